// Package whytest makes up random situations, and checks what package why says
// of them against whoever can claim: a twin of the claim script in plain Go
// ([Twin]), or the script itself.
//
// A task is claimable if there is a worker whose claim for all its free slots,
// with the first turn at the task's queue, gets it.
package whytest
