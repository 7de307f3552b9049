// Package remove removes directory trees that programs could write to.
//
// A program may leave a mount in its tree: a bind mount of /srv below a private
// directory is /srv. So a tree is walked by descriptors, no link is followed, and no
// directory is entered that belongs to another mount than the one above it. Devices
// say nothing about that: a bind mount has the device of what it shows.
//
// [Mounts] unmounts what a program has left mounted in a tree. What cannot be unmounted
// keeps the tree where it is, with a [MountedError].
package remove

// MountedError says that a tree was left, or a part of it, because something is
// mounted there or because that cannot be known.
type MountedError struct {
	// Path is where.
	Path string
	// Err is why it was not unmounted or could not be told; nil for a mount that is not
	// the caller's.
	Err error
}

// Error names path and remedy.
func (e *MountedError) Error() string {
	text := "something is mounted at '" + e.Path + "', so what holds it is not removed: unmount it, then remove the rest"
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	return text
}

// Unwrap returns Err.
func (e *MountedError) Unwrap() error { return e.Err }
