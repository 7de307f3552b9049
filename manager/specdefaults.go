package manager

import (
	"strconv"

	"github.com/tdf-go/tdf/internal/base/config"
	"github.com/tdf-go/tdf/internal/route"
	"github.com/tdf-go/tdf/internal/store"
)

// defaults are the values of a task that its opener did not give: those of its
// queue, by the names of their fields, before those of the configuration.
type defaults struct {
	queue  map[string]string
	config *config.TaskDefaults
}

func (d *defaults) of(name, configured string) string {
	if text, ok := d.queue[name]; ok {
		return text
	}
	return configured
}

// routed fills in where and when the task may run.
func (d *defaults) routed(spec *Spec, s *store.Spec) error {
	priority := strconv.Itoa(d.config.Priority)
	b := &s.Bucket
	for _, f := range []field{
		{"env", orText(spec.Env, d.of("env", d.config.Env)), &b.Env},
		{"labels", labelsText(spec.Labels, d.of("labels", d.config.Labels)), &b.Labels},
		{"resources", resourcesText(spec.Resources, d.of("resources", d.config.Resources)), &b.Resources},
		{"priority", intText(spec.Priority, d.of("priority", priority)), &priority},
	} {
		if err := f.check(); err != nil {
			return err
		}
	}
	b.Priority, _ = strconv.Atoi(priority) // checked
	if b.Queue = d.queueOf(spec); b.Queue == DefaultQueue {
		b.Queue = ""
	}
	return nil
}

// queueOf is the queue of a task.
func (d *defaults) queueOf(spec *Spec) string {
	return orText(orText(spec.Queue, d.config.Queue), DefaultQueue)
}

// repeated fills in when the task is run again.
func (d *defaults) repeated(spec *Spec, s *store.Spec) error {
	c := d.config
	for _, f := range []field{
		{"max_faults", limitText(spec.MaxFaults, d.of("max_faults", c.MaxFaults)), &s.MaxFaults},
		{"charge", orText(spec.Charge, d.of("charge", orText(c.Charge, ChargeAll))), &s.Charge},
		{"retry_delay", delayText(spec.RetryDelay, d.of("retry_delay", c.RetryDelay)), &s.RetryDelay},
		{"retry_backoff", floatText(spec.RetryBackoff, d.of("retry_backoff", c.RetryBackoff)), &s.RetryBackoff},
		{"retry_max_delay", durationText(spec.RetryMaxDelay, d.of("retry_max_delay", c.RetryMaxDelay)), &s.RetryMaxDelay},
		{"retry_jitter", floatText(spec.RetryJitter, d.of("retry_jitter", c.RetryJitter)), &s.RetryJitter},
		{"retry_exit_codes", codesText(spec.RetryExitCodes, d.of("retry_exit_codes", c.RetryExitCodes)), &s.RetryExitCodes},
		{"fatal_exit_codes", codesText(spec.FatalExitCodes, d.of("fatal_exit_codes", c.FatalExitCodes)), &s.FatalExitCodes},
	} {
		if err := f.check(); err != nil {
			return err
		}
	}
	return nil
}

// field is a value of a task on its way into the record.
type field struct {
	name, text string
	into       *string
}

func (f *field) check() (err error) {
	*f.into, err = route.ParseDefault(f.name, f.text)
	return err
}
