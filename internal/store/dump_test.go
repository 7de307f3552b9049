package store_test

import (
	stdcmp "cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tdf-go/tdf/internal/testkit/storetest"
	"github.com/tdf-go/tdf/task"
)

// dump is everything a namespace holds, by key: type, content, and whether the
// key expires. The name of the namespace is replaced, so that dumps of two
// namespaces can be compared.
func dump(t *testing.T, sp *storetest.Space) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, key := range sp.Raw.Keys(t.Context(), storetest.Pattern(sp.Namespace)).Val() {
		name := strings.TrimPrefix(key, sp.Namespace+":")
		text := content(t, sp, key)
		if sp.Raw.TTL(t.Context(), key).Val() > 0 {
			text += " expires"
		}
		text = lifeOfRedis.ReplaceAllString(text, "")
		if text == "hash map[]" {
			continue
		}
		text = eachItsOwn.ReplaceAllString(text, `"$1":"X"`)
		all[name] = strings.ReplaceAll(text, sp.Namespace, "NS")
	}
	return all
}

// eachItsOwn are fields that differ from call to call: what tells those that write
// a record apart, and a time that is not by the clock of the tests.
var eachItsOwn = regexp.MustCompile(`"(call|created_by|server_seen)":"[\w.]+"`)

// lifeOfRedis is written by the first client, and the clock by each call that
// comes a second after the one before.
var lifeOfRedis = regexp.MustCompile(`"(lives|clock)":"[^"]*" ?`)

func content(t *testing.T, sp *storetest.Space, key string) string {
	t.Helper()
	ctx := t.Context()
	kind := sp.Raw.Type(ctx, key).Val()
	switch kind {
	case "string":
		return kind + " " + sp.Raw.Get(ctx, key).Val()
	case "hash":
		return kind + fmt.Sprintf(" %q", sp.Raw.HGetAll(ctx, key).Val())
	case "list":
		return kind + fmt.Sprintf(" %q", sp.Raw.LRange(ctx, key, 0, -1).Val())
	case "set":
		members := sp.Raw.SMembers(ctx, key).Val()
		slices.Sort(members)
		return kind + fmt.Sprintf(" %q", members)
	case "zset":
		text := kind
		for _, z := range sp.Raw.ZRangeWithScores(ctx, key, 0, -1).Val() {
			text += fmt.Sprintf(" %v=%.6f", z.Member, z.Score)
		}
		return text
	case "stream":
		return kind + eventsText(t, sp, key)
	default:
		t.Fatalf("key %s is a %q", key, kind)
		return ""
	}
}

// sameDump fails the test if two dumps differ.
func sameDump(t *testing.T, want, got map[string]string, what string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: the namespace differs (- want, + got):\n%s", what, diff)
	}
}

// eventsText is what befell each task in turn, whichever events share an entry. Streams of live output have other entries.
func eventsText(t *testing.T, sp *storetest.Space, key string) (text string) {
	t.Helper()
	if key != sp.Key("events") {
		for _, entry := range sp.Raw.XRange(t.Context(), key, "-", "+").Val() { // the ids are moments
			text += fmt.Sprintf(" %q", entry.Values)
		}
		return text
	}
	events, err := sp.Store.Events(t.Context(), 0, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortStableFunc(events, func(a, b task.Event) int { return stdcmp.Compare(a.ID, b.ID) })
	for i := range events {
		events[i].Seq = 0
		text += fmt.Sprintf(" %+v", events[i])
	}
	return text
}
