package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tdf-go/tdf/internal/base/clean"
	"github.com/tdf-go/tdf/internal/base/cli"
	"github.com/tdf-go/tdf/internal/ops/answer"
	"github.com/tdf-go/tdf/internal/store/conn"
	"github.com/tdf-go/tdf/internal/store/plans"
	"github.com/tdf-go/tdf/manager"
	"github.com/tdf-go/tdf/task"
)

// submission is the verb submit with its flags.
type submission struct {
	texts              map[string]*string // of the flags, by the names of the fields
	labels, resources  []string
	cpus               int
	meta, variables    []string
	returned           []string
	stdin, hold        string
	eachLine, fromJSON string
	array              string
	upload             string // what to take along
	uploaded           string // its SHA-256, once it is packed
	requestKey, name   string
	after              []string
	window             int // of the job, 0 for none
	job                task.PlanID
	quiet, wait        bool
	command            bool // each task runs one, in the place of a program
}

func (a *app) submit() *cobra.Command {
	sub := &submission{}
	cmd := withPin(withJSON(withDryRun(&cobra.Command{
		Use:   "submit [--program NAME] [flags] [-- WORDS...]",
		Short: "Open tasks",
		Long: "submit opens one task, one for each line of a file, or one for each number of an array.\n\n" +
			"WORDS are a command and its arguments. The worker finds it in its PATH, or at an absolute path.\n" +
			"--upload takes a directory or a file along, through Redis: the command runs in a copy of it, and\n" +
			"may be a path that begins there, such as ./simulate. --return brings files back: the round keeps\n" +
			"them when its program has ended, and results --dir writes them.\n\n" +
			"With --program WORDS are the arguments of its run.sh, and --source or --upload says where to get\n" +
			"that: https://HOST/PATH, rsync:PATH, or file:PATH for what lies here, which may be a directory.\n" +
			"Nothing in WORDS is interpreted, except that each {} becomes the line or the number; without\n" +
			"{}, that is the last word. Without WORDS, each line of --each-line is run by sh -c, or with\n" +
			"--program split at blanks.\n\n" +
			"A command fails by its exit status, a program also if it writes to stderr (--fail-on). Missing\n" +
			"values come from the defaults of the queue, then from [task_defaults]. A task is archived as soon\n" +
			"as it has ended, and goes to no handler, unless --archive manager or its queue says otherwise.\n\n" +
			"Times are seconds since 1970, RFC 3339, or +10m from now; durations are seconds, or text such as\n" +
			"1h30m. inf is a time without end, unlimited a number without limit, and none an empty list. With\n" +
			"--key a second submission opens nothing and prints the id of the first; other work is refused.",
		Example: "  tdf-manager submit -- simulate --seed 7\n" +
			"  tdf-manager submit -e LANG=C -e TOKEN -- simulate\n" +
			"  tdf-manager submit --array 1-100%8 --stdin model.json -- simulate --seed {}\n" +
			"  tdf-manager submit --after j7 --each-line commands.txt\n" +
			"  tdf-manager submit --upload . --return out.csv --array 1-9 -- ./simulate {}\n" +
			"  ls /data/*.wav | tdf-manager submit --wait --each-line - -- flac {}\n" +
			"  tdf-manager submit --program sum --source https://host/sum.tar.gz -- 1 2 3\n" +
			"  tdf-manager submit --program train --source rsync:run.sh -l disk=ssd --resource gpu=1\n" +
			`  echo '{"program":"sum","source":"rsync:run.sh"}' | tdf-manager submit --from-json -`,
		RunE: a.withManager(sub.do),
	})))
	sub.taskFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&sub.eachLine, "each-line", "", "open a task for each line of a file (- is stdin)")
	flags.StringVar(&sub.fromJSON, "from-json", "", "open a task for each line of a file (- is stdin), a JSON object")
	flags.StringVar(&sub.array, "array", "", "open a task for each number, such as 1-100, 0-30:10 or 1,3,5-8; 1-100%5 runs 5 at a time")
	flags.StringVar(&sub.upload, uploadName, "", "take a directory or a file along through Redis, for the program or command")
	flags.StringVar(&sub.requestKey, "request-key", "", "name of this submission; repeating it opens nothing twice")
	flags.StringVar(&sub.name, "name", "", "name of the job that the tasks are, for people")
	flags.StringSliceVar(&sub.after, "after", nil,
		"begin after another job has succeeded, such as j6; or after j6:any end of it, or j6:failure")
	flags.BoolVarP(&sub.quiet, "quiet", "q", false, "print the ids only, one a line")
	flags.BoolVar(&sub.wait, "wait", false, "wait until the tasks have ended, and end as wait does")
	for _, other := range []string{"quiet", jsonName} {
		cmd.MarkFlagsMutuallyExclusive("wait", other)
	}
	cmd.MarkFlagsMutuallyExclusive("each-line", "from-json", "array")
	cmd.MarkFlagsMutuallyExclusive(uploadName, sourceField)
	cmd.MarkFlagsMutuallyExclusive("quiet", jsonName)
	return cmd
}

// taskFlags adds the flags that define a task.
func (sub *submission) taskFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	sub.texts = map[string]*string{}
	for _, f := range task.Fields() {
		switch f.Name {
		case inputField, argvField, labelsField, resourcesField, metaField, variablesField, stdinField, holdField, returnField:
			continue // are given in other ways
		}
		if !f.Planned {
			sub.texts[f.Name] = flags.String(f.Flag(), "", f.Usage())
		}
	}
	flags.StringArrayVarP(&sub.labels, "label", "l", nil, "label=value that a worker must offer; may be repeated")
	flags.StringArrayVar(&sub.resources, "resource", nil, "name=number that the task takes of its node (mem=2048: MiB); may be repeated")
	flags.IntVar(&sub.cpus, task.CPUs, 1, "slots of its worker that the task takes")
	flags.StringArrayVar(&sub.meta, attrFlag, nil, "name=text for an attribute of the task, which may change later; may be repeated")
	flags.Func(metaField, "", func(text string) error { return fmt.Errorf("the flag is --%s now; write --%[1]s %s", attrFlag, text) })
	_ = flags.MarkHidden(metaField) // it is there
	flags.StringArrayVarP(&sub.variables, envField, "e", nil,
		"KEY=VALUE for the environment of the program, or KEY as it is set here; may be repeated")
	flags.StringVar(&sub.stdin, stdinField, "", "file that each program reads from its standard input (- is stdin)")
	flags.StringArrayVar(&sub.returned, returnField, nil,
		"file of the round's directory to keep for results, such as 'out/*.csv', or a directory; may be repeated")
	flags.StringVar(&sub.hold, holdField, "", "begin held, until release; --hold=REASON says why")
	flags.Lookup(holdField).NoOptDefVal = heldAnyway
}

// heldAnyway is --hold without a reason, as in JSON.
const heldAnyway = "true"

// given is what the flags say of each task.
func (sub *submission) given(now time.Time) (task.Spec, error) {
	spec := task.Spec{Hold: sub.hold, Return: sub.returned}
	if sub.hold == heldAnyway {
		spec.Hold = task.HeldText
	}
	var err error
	if spec.Meta, err = pairs(sub.meta, noText); err != nil {
		return spec, err
	}
	if spec.Variables, err = pairs(sub.variables, variableHere); err != nil {
		return spec, err
	}
	if spec.Stdin = sub.stdin; sub.stdin != "" && task.SourceSHA256(sub.stdin) == "" {
		spec.Stdin = task.FilePrefix + sub.stdin
	}
	for _, f := range task.Fields() {
		text := sub.texts[f.Name]
		if text == nil {
			continue
		}
		if err := spec.Set(f.Name, *text, now); err != nil {
			return spec, err
		}
	}
	if err := spec.Set(labelsField, strings.Join(sub.labels, ","), now); err != nil {
		return spec, err
	}
	return spec, spec.Set(resourcesField, strings.Join(sub.demands(), ","), now)
}

// demands are the resources, with the slots.
func (sub *submission) demands() []string {
	if sub.cpus == 1 {
		return sub.resources
	}
	return append(slices.Clip(sub.resources), task.CPUs+"="+strconv.Itoa(sub.cpus))
}

// noText is the answer to the name of an attribute alone.
func noText(name string) (string, error) {
	return "", cli.Usagef("--%s %q: write name=text, such as phase=load", attrFlag, name)
}

// pairs reads texts of the form name=text. missing gives the text of a name alone; nil if there are no pairs.
func pairs(texts []string, missing func(name string) (string, error)) (map[string]string, error) {
	var m map[string]string
	for _, pair := range texts {
		name, text, ok := strings.Cut(pair, "=")
		if !ok {
			var err error
			if text, err = missing(name); err != nil {
				return nil, err
			}
		}
		if m == nil {
			m = map[string]string{}
		}
		m[name] = text
	}
	return m, nil
}

// variableHere is the value that a variable has here. --env was the flag of the environment that a worker must share.
func variableHere(name string) (string, error) {
	value, set := os.LookupEnv(name)
	if !set {
		return "", cli.Usagef("--env %q: no variable of that name is set here; write --env %s=VALUE, or, for the environment "+
			"that a worker must share, --environment %s", name, name, name)
	}
	return value, nil
}

// do reads and checks everything before it opens anything.
func (sub *submission) do(ctx context.Context, s *session) (err error) {
	if err := sub.checkFlags(s); err != nil {
		return err
	}
	packed, err := sub.pack(ctx, s)
	if err != nil {
		return err
	}
	if packed != nil {
		defer func() { err = errors.Join(err, packed.Close()) }()
	}
	specs, err := sub.specs(ctx, s)
	if err != nil {
		return err
	}
	job, err := sub.jobSpec(ctx, s, specs)
	if err != nil {
		return err
	}
	if s.dryRun {
		sub.printDry(s, specs)
		return nil
	}
	if err = sub.put(ctx, s, packed); err != nil {
		return err
	}
	if err = sub.putStdin(ctx, s, specs); err != nil {
		return err
	}
	key := sub.requestKey
	if key == "" {
		key = conn.NewToken()
	}
	life, err := s.manager.Life(ctx)
	if err != nil {
		return err
	}
	opened, err := s.manager.SubmitAll(ctx, slices.Values(specs), manager.WithRequestKey(key),
		manager.AsJob(job, func(id task.PlanID) { sub.job = id }))
	if err != nil {
		return sub.halfDone(s, opened, len(specs), err)
	}
	s.warnOfLoss(ctx, life, opened, "--request-key "+cli.Safe(key))
	sub.print(s, opened, specs)
	if !sub.wait || len(opened) == 0 {
		return nil
	}
	return sub.await(ctx, s, opened)
}

// await waits for the job, or, if some tasks were there before, for each task.
func (sub *submission) await(ctx context.Context, s *session, opened []task.Opened) (err error) {
	done := answer.Opened(opened, sub.job)
	names := plans.JobName(sub.job)
	if len(done.Existing) == 0 {
		err = waitJob(ctx, s, sub.job, 0)
	} else {
		names, err = clean.Ranges(done.IDs), waitFor(ctx, s, done.IDs, 0)
	}
	if err != nil && ctx.Err() != nil {
		s.note("the tasks go on; wait for them with: %s", s.command("wait %s", names))
	}
	return err
}

// checkFlags refuses empty values that would silently mean something else.
func (sub *submission) checkFlags(s *session) error {
	flags := s.cmd.Flags()
	for name, remedy := range map[string]string{
		"request-key": "give a name for this submission", "key": "give a name for the task, or leave it out",
		"name": "give a name for the job, or leave it out", queueField: "give the name of a queue, or leave it out",
		holdField: "give a reason, or write --hold alone", stdinField: "give the path of a file, or - for stdin",
		"array": "write numbers such as 1-100",
	} {
		if f := flags.Lookup(name); f.Changed && f.Value.String() == "" {
			return cli.Usagef("--%s is empty; %s", name, remedy)
		}
	}
	if flags.Changed("after") && len(sub.after) == 0 {
		return cli.Usagef("--after is empty; give the name of a job, such as j6, or leave it out")
	}
	if slices.Contains([]string{sub.eachLine, sub.fromJSON}, "-") && sub.stdin == "-" {
		return cli.Usagef("--stdin and the lines of the tasks would be read from the same stdin; write one of them to a file, and give its path")
	}
	if sub.hold == heldAnyway && len(s.args) > 0 && s.cmd.ArgsLenAtDash() != 0 {
		return cli.Usagef("with --hold, write WORDS behind -- (a reason is written --hold=REASON)")
	}
	if err := sub.checkWhat(s); err != nil {
		return err
	}
	several := flags.Changed("each-line") || flags.Changed("from-json")
	if key := *sub.texts[keyField]; several && key != "" {
		return cli.Usagef("--key %q would be the key of every task; give each its own as field key of --from-json, "+
			"or name the submission by --request-key", key)
	}
	return nil
}

// checkWhat refuses a submission that does not say what is to be run.
func (sub *submission) checkWhat(s *session) error {
	flags := s.cmd.Flags()
	if *sub.texts[programField] != "" || flags.Changed("from-json") {
		return nil
	}
	words := len(s.args) > 0
	switch {
	case *sub.texts[sourceField] != "":
		return cli.Usagef("--program is missing; write the name of the program, or leave out --source for a command")
	case words && s.cmd.ArgsLenAtDash() != 0:
		return cli.Usagef("--program is missing; write the name of the program, or, for a command, %s", s.command("submit -- %s", s.args[0]))
	case !words && !flags.Changed("each-line"):
		return cli.Usagef("--program is missing; write the name of the program, or a command behind --")
	}
	sub.command = true
	if !words {
		return nil
	}
	return sub.checkCommand(s, s.args[0])
}

// halfDone says what was opened before the error, and how to go on.
func (sub *submission) halfDone(s *session, opened []task.Opened, total int, err error) error {
	var broken *manager.SubmissionError
	if !errors.As(err, &broken) {
		return err
	}
	ids := task.IDs(opened)
	if errors.Is(err, task.ErrRequestKey) {
		how := "no task was opened"
		if len(ids) > 0 {
			how = fmt.Sprintf("only %d of %d tasks are there (%s)", len(ids), total, clean.Ranges(ids))
		}
		return cli.WithCode(cli.ExitUsage, fmt.Errorf("%s: --request-key %q was used for other tasks; "+
			"give another key for another submission", how, broken.RequestKey))
	}
	if len(opened) == 0 {
		return fmt.Errorf("no task was opened: %w", broken.Err)
	}
	if sub.quiet {
		sub.print(s, opened, nil)
	}
	return fmt.Errorf("only %d of %d tasks were opened (%s): %w; "+
		"to open the others, and none twice, repeat it with --request-key %s",
		len(ids), total, clean.Ranges(ids), broken.Err, broken.RequestKey)
}

// warnOfLoss says, on stderr, that Redis may have lost some of the tasks that were opened
// since it was in that life. key is the flag that repeats the submission.
func (s *session) warnOfLoss(ctx context.Context, since manager.Life, opened []task.Opened, key string) {
	ids := task.IDs(opened)
	if len(ids) == 0 {
		return
	}
	life, err := s.manager.Life(ctx)
	var found string
	switch tasks := "tasks " + clean.Ranges(ids); {
	case errors.Is(err, conn.ErrHistory), err == nil && life.Epoch != since.Epoch:
		found = "Redis has lost changes, or the namespace was flushed, while " + tasks +
			" were opened: these ids may be missing, or mean other tasks"
	case err != nil:
		found = "Redis does not answer since " + tasks + " were opened, and may have lost some: " + cli.Safe(err.Error())
	case life != since:
		found = "Redis was started anew or failed over while " + tasks + " were opened: none of them is known to be lost"
	default:
		return
	}
	s.warn("warning: %s; check with %s, or submit again with %s, which opens only what is missing", found, s.command("verify"), key)
}

func (sub *submission) print(s *session, opened []task.Opened, specs []task.Spec) {
	done := answer.Opened(opened, sub.job)
	ids, fresh, existing := done.IDs, done.Fresh, done.Existing
	switch {
	case s.json:
		s.out.JSON(done)
	case sub.quiet:
		var text strings.Builder
		for _, id := range ids {
			fmt.Fprintln(&text, id)
		}
		s.printf("%s", text.String())
	case len(ids) == 0:
		s.printf("there was nothing to open\n")
	case len(ids) == 1 && len(existing) == 1:
		s.printf("task %d was there already: key %s\n", ids[0], cli.Safe(specs[0].Key))
	case len(ids) == 1:
		s.printf("opened task %d: %s\n", ids[0], specText(&specs[0]))
	default:
		text := fmt.Sprintf("opened %d tasks", len(fresh))
		if len(fresh) > 0 {
			text += fmt.Sprintf(": %s, as job %s", clean.Ranges(fresh), plans.JobName(sub.job))
		}
		if len(existing) > 0 {
			text += fmt.Sprintf("; %d were there already by their keys: %s", len(existing), clean.Ranges(existing))
		}
		s.printf("%s\n", text)
	}
}

func specText(spec *task.Spec) string {
	source, _, _ := strings.Cut(spec.Source, task.Pin(""))
	program := cmp.Or(spec.Program, strings.TrimPrefix(source, task.CommandPrefix))
	return cli.Safe(program) + " " + cli.Safe(task.InputText(spec.Input, spec.Argv))
}

// printDry says what would be opened; there are no ids yet.
func (sub *submission) printDry(s *session, specs []task.Spec) {
	switch {
	case s.json:
		s.out.JSON(answer.WouldOpen(len(specs)))
	case sub.quiet:
	case len(specs) == 0:
		s.printf("there is nothing to open\n")
	case len(specs) == 1:
		unless := ""
		if specs[0].Key != "" {
			unless = " (unless its key is known)"
		}
		s.printf("would open a task: %s%s\n", specText(&specs[0]), unless)
	default:
		s.printf("would open %d tasks, from %s to %s\n", len(specs), specText(&specs[0]), specText(&specs[len(specs)-1]))
	}
}
