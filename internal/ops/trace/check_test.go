package trace

import (
	"strconv"
	"strings"
	"testing"
	"time"

	sm "github.com/tdf-go/tdf/statemachine"
	"github.com/tdf-go/tdf/task"
)

// read makes events of lines "id round from to event actor"; a dash is nothing,
// and same is the state before.
func read(t *testing.T, text string) []task.Event {
	t.Helper()
	var events []task.Event
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		for i := range words {
			words[i] = strings.Trim(words[i], "-")
		}
		id, err := strconv.ParseInt(words[0], 10, 64)
		if err != nil {
			t.Fatal(line, err)
		}
		round, err := strconv.Atoi(words[1])
		if err != nil { // of a repair
			round = -1
		}
		e := task.Event{
			Seq: int64(len(events) + 1), ID: id, Round: round, By: "x",
			From: sm.State(words[2]), To: sm.State(words[3]), Event: sm.Event(words[4]), Actor: sm.Actor(words[5]),
		}
		if len(words) > 6 { // a later moment
			e.At = e.At.Add(time.Second)
		}
		if e.To == "same" {
			e.To = e.From
		}
		events = append(events, e)
	}
	return events
}

const (
	created  = "1 0 - open create manager\n"
	claimed  = created + "1 0 open running claim worker\n"
	executed = claimed + "1 0 running executed report worker\n"
	asked    = claimed + "1 0 running same cancel manager\n"
	archived = executed + "1 0 executed succeeded settle server\n1 0 succeeded archived archive manager\n"
)

// TestLegal: what the table allows, what is cut off at the beginning, and what
// foreign clients leave out.
func TestLegal(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing":          "",
		"a whole life":     archived,
		"settled at once":  executed + "1 0 executed succeeded settle worker\n1 0 succeeded archived archive manager\n",
		"archived at once": executed + "1 0 executed succeeded settle worker\n1 0 succeeded archived archive worker\n",
		"expired at once":  created + "1 0 open expired deadline server\n1 0 expired archived archive server\n",
		"settled together": executed + strings.ReplaceAll(executed, "1 0 ", "2 0 ") + "1 0 executed succeeded settle worker\n2 0 executed succeeded settle worker\n",
		"begins settled":   "1 0 executed succeeded settle worker\n",
		"two tasks":        created + "2 0 - blocked create manager\n1 0 open running claim worker\n2 0 blocked open unblock server\n",
		"again":            executed + "1 0 executed open settle server\n1 1 open running claim worker\n1 1 running open lose server\n1 2 open expired deadline server\n",
		"a worker's loss":  claimed + "1 0 running open lose worker\n1 1 open running claim worker\n1 1 running orphaned lose worker\n",
		"a stop":           asked + "1 0 running terminated hand_back worker\n",
		"a stop, then gone": asked + "1 0 running terminated lose server\n" +
			"1 0 terminated archived archive manager\n",
		"a stop of a report":  executed + "1 0 executed same cancel manager\n1 0 executed failed settle server\n",
		"begins late":         "7 3 running executed report worker\n7 3 executed open settle server\n7 4 open blocked hold manager\n",
		"begins with an end":  "7 3 failed archived archive manager\n8 0 running terminated hand_back worker\n9 1 running terminated cancel manager\n",
		"older than the rest": "5 0 - open create manager\n4 2 open running claim worker\n",
		"foreign claim":       created + "1 0 running expired deadline server\n",
		"foreign round":       created + "1 0 executed open settle server\n1 1 open running claim worker\n1 1 running executed report worker\n",
		"foreign task":        created + "2 0 open running claim worker\n3 0 executed succeeded settle server\n4 0 running terminated cancel manager\n",
		"foreign archive":     executed + "1 0 executed failed settle server\n1 0 archived same repair server\n",
		"repair":              archived + "1 0 archived running repair server\n1 0 running terminated hand_back worker\n",
		"set aside":           claimed + "1 0 running - repair server\n1 4 executed open settle server\n1 5 open running claim worker\n",
		"repair of a round":   claimed + "1 x running open repair server\n1 4 executed open settle server\n",
		"repair by hand":      claimed + "1 0 running open repair manager\n1 0 open running claim worker\n1 0 running executed report worker\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, p := range Check(read(t, text)) {
				t.Error(p)
			}
		})
	}
}

// TestIllegal: the last event of each is wrong, and said to be for that reason.
func TestIllegal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, says string }{
		"no such row":               {claimed + "1 0 running succeeded settle server", "no such step of a server"},
		"wrong actor":               {executed + "1 0 executed succeeded settle manager", "no such step of a manager"},
		"settled by worker, later":  {executed + "1 0 executed succeeded settle worker later", "only in the move that reports it"},
		"archived by server, later": {created + "1 0 open expired deadline server\n1 0 expired archived archive server later", "a move of its own"},
		"archived by another":       {created + "1 0 open expired deadline server\n1 0 expired archived archive worker", "a move of its own"},
		"failed by its worker":      {executed + "1 0 executed failed settle worker", "no such step of a worker"},
		"settled after a stop":      {asked + "1 0 running executed report worker\n1 0 executed succeeded settle worker", "under another condition only"},
		"unknown event":             {claimed + "1 0 running open vanish server", "no such step"},
		"unknown state":             {claimed + "1 0 running gone lose server", "no such step"},
		"unknown actor":             {claimed + "1 0 running open lose nobody", "no such step"},
		"claimed twice":             {claimed + "1 0 open running claim worker", "the task was at running, round 0"},
		"reported twice":            {executed + "1 0 running executed report worker", "the task was at executed, round 0"},
		"archived twice":            {archived + "1 0 succeeded archived archive manager", "the task was at archived"},
		"created twice":             {claimed + created, "the task was at running"},
		"a round forgotten":         {claimed + "1 0 running open lose server\n1 0 open running claim worker", "the task was at open, round 1"},
		"a round too many":          {claimed + "1 1 running executed report worker", "the task was at running, round 0"},
		"created in a later round":  {created + "2 1 - open create manager", "the task was at nothing, round 0"},
		"a beginning missing":       {created + "3 1 open running claim worker", "the task was at nothing"},
		"begins with its end":       {created + "2 0 succeeded archived archive manager", "the task was at nothing"},
		"report of a foreign round": {created + "1 0 running executed report worker", "nobody has recorded a claim"},
		"another's report missing":  {claimed + "1 0 executed succeeded settle server", "the task was at running"},
		"a claim cancelled at once": {claimed + "1 0 running terminated cancel manager", "under another condition only: the round has no claim id"},
		"a mark for foreigners":     {created + "1 0 running same cancel manager", "under another condition only"},
		"marked twice":              {asked + "1 0 running same cancel manager", "a stop was asked for before"},
		"opened after a stop":       {asked + "1 0 running open hand_back worker", "under another condition only"},
		"lost after a stop":         {asked + "1 0 running open lose server", "under another condition only"},
		"orphaned after a stop":     {asked + "1 0 running orphaned lose server", "under another condition only"},
		"stopped without asking":    {claimed + "1 0 running terminated hand_back worker", "a stop was asked for"},
		"settled open after a stop": {asked + "1 0 running executed report worker\n1 0 executed open settle server", "under another condition only"},
		"repair by a worker":        {claimed + "1 0 running open repair worker", `"worker" does not repair`},
		"repair into nowhere":       {claimed + "1 0 running gone repair server", `no state "gone"`},
		"foreign clients settle":    {created + "1 0 succeeded archived archive manager", "the task was at open"},
		"foreign clients hold":      {created + "1 0 blocked open unblock manager", "the task was at open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := read(t, c.text)
			found := Check(events)
			last := events[len(events)-1]
			if len(found) != 1 || found[0].Event != last || !strings.Contains(found[0].String(), c.says) {
				t.Errorf("found %v, want only the last, because %q", found, c.says)
			}
		})
	}
}

// TestOneProblemEach: after a wrong step the task is where that step says.
func TestOneProblemEach(t *testing.T) {
	t.Parallel()
	found := Check(read(t, claimed+"1 7 running open lose server\n1 8 open running claim worker\n1 8 running succeeded settle worker\n1 8 succeeded archived archive manager\n"))
	if len(found) != 2 || found[0].Event.Seq != 3 || found[1].Event.Seq != 5 {
		t.Error(found)
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	events := read(t, executed)
	events[2].Seq = 2
	if found := Check(events); len(found) != 1 || found[0].Event != events[2] || found[0].Text != "it comes after #2" {
		t.Error(found)
	}
	events[1].Seq, events[2].Seq = 9, 90
	if found := Check(events); len(found) != 0 {
		t.Error("gaps are fine:", found)
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	ends := Ends(read(t, claimed+"1 0 running open lose server\n2 0 - blocked create manager\n3 0 - open repair server\n3 0 open - repair server\n"))
	if len(ends) != 2 || ends[1] != (Where{sm.Open, 1}) || ends[2] != (Where{sm.Blocked, 0}) {
		t.Error(ends)
	}
	for _, c := range []struct {
		at, other Where
		want      bool
	}{
		{Where{sm.Open, 1}, Where{sm.Open, 1}, true},
		{Where{sm.Open, 1}, Where{sm.Running, 1}, true},
		{Where{sm.Open, 1}, Where{sm.Executed, 1}, true},
		{Where{sm.Open, 1}, Where{sm.Open, 2}, false},
		{Where{sm.Open, 1}, Where{sm.Blocked, 1}, false},
		{Where{sm.Executed, 1}, Where{sm.Succeeded, 1}, false},
		{Where{sm.Failed, 1}, Where{sm.Archived, 1}, true},
		{Where{sm.Archived, 1}, Where{sm.Failed, 1}, false},
	} {
		if got := c.at.MayBe(c.other); got != c.want {
			t.Errorf("%v may be %v: %v", c.at, c.other, got)
		}
	}
}

func TestProblemText(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]task.Event{
		"#1: manager create task 1: nothing -> open, round 0: why": {Event: sm.Create, Actor: sm.Manager, To: sm.Open, ID: 1, Seq: 1},
		"#44: worker w1 report task 12: running -> executed, round 3: why": {
			ID: 12, Round: 3, From: sm.Running, To: sm.Executed, Event: sm.Report, Actor: sm.Worker, By: "w1", Seq: 44,
		},
	} {
		if got := (Problem{e, "why"}).String(); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}
