package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Results are all of one run, as they stand in the JSON file.
type Results struct {
	Date     time.Time `json:"date"`
	Machine  Machine   `json:"machine"`
	Versions []Version `json:"versions"`
	Sizes    sizes     `json:"sizes"`
	Tables   []Table   `json:"tables"`
}

// Version is that of a peer, or of what it needs.
type Version struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Table is one table.
type Table struct {
	Name      string   `json:"name"`
	Title     string   `json:"title"`
	Reference string   `json:"reference"`
	Metrics   []Metric `json:"metrics"`
	Rows      []Row    `json:"rows"`
	Ratios    []Ratio  `json:"ratios"`
}

// Metric is a column.
type Metric struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Less   bool   `json:"less_is_better,omitempty"`
	Digits int    `json:"digits,omitempty"`
}

// Row is one contender: either Values by metric, or why there are none.
type Row struct {
	Name   string            `json:"name"`
	Absent string            `json:"absent,omitempty"`
	Values map[string]Spread `json:"values,omitempty"`
	// OfReference is the median of its ratios to the reference in the first metric; 0 if there is none.
	OfReference float64 `json:"of_reference,omitempty"`
}

// Spread is a metric, or a ratio, in all rounds.
type Spread struct {
	Median  float64   `json:"median"`
	Lowest  float64   `json:"lowest"`
	Highest float64   `json:"highest"`
	Rounds  []float64 `json:"rounds"`
}

// Ratio is a row of TDF in one of a peer, by a metric. Least and Aim are 0 where nothing is wanted; for metrics of which
// less is better they are the most that is wanted.
type Ratio struct {
	Row    string `json:"row"`
	Of     string `json:"of"`
	Metric string `json:"metric"`
	Less   bool   `json:"less_is_better,omitempty"`
	Spread
	Least   float64 `json:"least,omitempty"`
	Aim     float64 `json:"aim,omitempty"`
	Verdict string  `json:"verdict,omitempty"`
}

// measured reports whether there is a ratio at all.
func (r Ratio) measured() bool { return len(r.Rounds) > 0 }

func readResults(file string) (*Results, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var r Results
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(r.Tables) == 0 {
		return nil, fmt.Errorf("%s: no tables", file)
	}
	return &r, nil
}
