package file

// File is a plan file that was read and checked, but for what depends on values of its parameters.
type File struct {
	// Path is where it was read from, for errors.
	Path string
	// Name is that of the plan, OnFailure what it does when a task fails: cancel, hold or continue; empty for the default.
	// Parameters in the name are not filled in yet.
	Name, OnFailure string
	nameLine        int
	// Params are in the order of the file, and so are Steps.
	Params   []Param
	Defaults []Field
	Steps    []Step
	index    map[string]int // of steps, by name
}

// Param is a parameter of a plan.
type Param struct {
	Name string
	Line int
	// Default is its value if none is given. Required says that there is none.
	Default  Value
	Required bool
}

// Step is a step of a plan: a task, or one for each item of a list.
type Step struct {
	Name string
	Line int
	// Fields are those of its task, without those of the defaults.
	Fields []Field
	Needs  []Need
	// Args says how its program gets the results of what it needs: words, files, or empty for the default.
	Args    string
	Foreach *Foreach
}

// Field is a field of a task as it stands in the file.
type Field struct {
	Name  string
	Line  int
	Value Value
}

// Need is a step that another one needs.
type Need struct {
	Step string
	Line int
	// When is success, any or failure.
	When string
}

// Foreach is what a step is repeated for: the items, or those of a parameter, or the lines of the result of a step.
type Foreach struct {
	Line  int
	Items []string
	Param string
	// Lines is the step, empty for none; Most is how many lines there may be.
	Lines string
	Most  int
}

// Ends of a task that are enough for one that needs it.
const (
	Success = "success"
	Any     = "any"
	Failure = "failure"
)

// Names of fields of a step which are not those of a task.
const (
	needsField   = "needs"
	argsField    = "args"
	foreachField = "foreach"
)

// Names of fields of a task that this package knows.
const (
	programField = "program"
	inputField   = "input"
	argvField    = "argv"
)

func (f *File) step(name string) *Step {
	if i, ok := f.index[name]; ok {
		return &f.Steps[i]
	}
	return nil
}

func (f *File) param(name string) *Param {
	for i := range f.Params {
		if f.Params[i].Name == name {
			return &f.Params[i]
		}
	}
	return nil
}

func (s *Step) field(name string) *Field {
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return &s.Fields[i]
		}
	}
	return nil
}
