package main

import (
	"context"
	"encoding/json"
	"io"

	"github.com/rubicon-go/rubicon/cmd/rubicon/internal/lab"
)

func playLab(ctx context.Context, args []string, out, errs io.Writer) int {
	e := json.NewEncoder(out)
	lab.Run(ctx, lab.Faults(), func(r lab.Row) { e.Encode(r) })
	return 0
}
