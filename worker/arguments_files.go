package worker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"unicode/utf8"
)

const (
	// argumentsDir is the directory in the private directory with a file for each
	// result that the task needs: 1, 2 and so on.
	argumentsDir = ".tdf-args"
	// argumentsFile is the file there that describes them all.
	argumentsFile = ".tdf-args.json"
)

// argument is a result in argumentsFile. A text that is no UTF-8, which JSON
// cannot say, is there as base64.
type argument struct {
	Task   int64   `json:"task"`
	State  string  `json:"state"`
	Result *string `json:"result,omitempty"`
	Base64 []byte  `json:"base64,omitempty"`
	Cut    bool    `json:"cut,omitempty"`
}

func (res *Result) argument() argument {
	a := argument{Task: res.Task, State: string(res.State), Cut: res.Cut}
	if utf8.ValidString(res.Text) {
		a.Result = &res.Text
	} else {
		a.Base64 = []byte(res.Text)
	}
	return a
}

// writeArguments puts the results that the task needs into its private directory, as
// the program's user: the directory belongs to that one, who must not be able to lead
// the worker anywhere else.
func (r *round) writeArguments() error {
	if len(r.task.Needs) == 0 {
		return nil
	}
	if err := r.worker.opts.Container.AsOwner(r.fillArguments); err != nil {
		return fmt.Errorf("could not write the results that the task needs to its private directory: %w", err)
	}
	return nil
}

func (r *round) fillArguments() error {
	root, err := os.OpenRoot(r.private)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // the files in it are closed already
	text, err := r.describeArguments()
	if err == nil {
		err = plant(root, argumentsFile, text)
	}
	if err == nil {
		err = root.Mkdir(argumentsDir, 0o700)
	}
	for i := range r.results {
		if err != nil {
			break
		}
		err = plant(root, filepath.Join(argumentsDir, strconv.Itoa(i+1)), []byte(r.results[i].Text))
	}
	return err
}

// describeArguments is the content of argumentsFile.
func (r *round) describeArguments() ([]byte, error) {
	list := make([]argument, len(r.results))
	for i := range r.results {
		list[i] = r.results[i].argument()
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(list)
	return text.Bytes(), err
}

// plant writes a file for the program. It opens nothing that is there, such as a FIFO of
// another program of that user.
func plant(root *os.Root, name string, text []byte) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}
