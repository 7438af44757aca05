package rubicon_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"runtime"
)

// printed returns v as every verb and every slog handler prints it.
func printed(v any) []string {
	var text, json bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("m", "v", v)
	slog.New(slog.NewJSONHandler(&json, nil)).Info("m", "v", v)
	return []string{
		fmt.Sprintf("%v", v), fmt.Sprintf("%+v", v), fmt.Sprintf("%#v", v), fmt.Sprintf("%s", v),
		fmt.Sprintf("%q", v), text.String(), json.String(),
	}
}

// allocatedBytes returns how many bytes f allocates.
func allocatedBytes(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
