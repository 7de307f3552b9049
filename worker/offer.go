package worker

import (
	"maps"
	"slices"
	"strings"

	"github.com/tdf-go/tdf/internal/route"
)

// noMaxThreads is Options.MaxThreads without a limit.
const noMaxThreads = int(route.NoLimit)

// runsPrograms reports whether the worker can run what it has no handler for.
func (o *Options) runsPrograms() bool { return o.Programs != nil && o.Container != nil }

// offer is what decides which tasks this worker may take. The classes of its
// handlers are theirs, unless it is told its classes.
func (o *Options) offer() route.Offer {
	offer := route.Offer{
		Worker: o.Name, Node: o.Node, Env: o.Env, Labels: slices.Sorted(slices.Values(o.Labels)),
		Resources: o.Resources, Classes: slices.Clone(o.Classes), MaxThreads: route.Limit(max(o.MaxThreads, noMaxThreads)),
	}
	if len(o.Classes) == 0 {
		offer.Classes = o.handlerClasses()
	}
	return offer
}

// handlerClasses are the names of the handlers that a queue can have as class.
func (o *Options) handlerClasses() []string {
	names := slices.Sorted(maps.Keys(o.Handlers))
	return slices.DeleteFunc(names, func(name string) bool { return route.CheckClass(name) != nil })
}

// validateOffer checks by the rules for tasks, queues and nodes, which would
// never match anything else.
func (o *Options) validateOffer() error {
	if err := route.CheckEnv(o.Env); err != nil {
		return &OptionError{"Env", o.Env, err.Error()}
	}
	for _, label := range o.Labels {
		if _, err := route.ParseLabels(label); err != nil || label == "" || strings.Contains(label, ",") {
			return &OptionError{"Labels", label, "write each as label=value, without blanks and commas"}
		}
	}
	for _, class := range o.Classes {
		if err := route.CheckOffer(class); err != nil {
			return &OptionError{"Classes", class, err.Error()}
		}
	}
	if _, err := route.ParseResources(route.Resources(o.Resources).Text()); err != nil {
		return &OptionError{"Resources", o.Resources, err.Error()}
	}
	return nil
}
