// Command rubicon shows and inspects what package rubicon does.
//
//	rubicon lab [-json] [-only NAME]
//	rubicon judge [-content-type TYPE] [FILE ...]
//	rubicon judge -manifest MANIFEST
//	rubicon version
//
// It exits with status 0 when it did what was asked, 1 when that failed, and 2
// when it was called wrongly.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
)

// The exit statuses of the command and of every subcommand.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// A command is one subcommand. Its run gets the arguments after the name, writes
// what was asked for to out and everything else to errs, and returns one of the
// exit statuses. It parses its own flags, and returns soon after ctx has ended.
type command struct {
	name  string
	short string // one line of the usage text
	run   func(ctx context.Context, args []string, out, errs io.Writer) int
}

// commands lists the subcommands in the order of the usage text.
func commands() []command {
	return []command{
		{"lab", "play faults against three HTTP clients and show what became of each", runLab},
		{"judge", "say how recorded streams ended", runJudge},
		{"version", "print the version and what it was built with", version},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run hands args to the subcommand that its first word names.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	if len(args) == 0 {
		usage(errs)
		return exitUsage
	}
	switch args[0] {
	case "help", "-h", "-help", "--help":
		usage(out)
		return exitOK
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, args[1:], out, errs)
		}
	}
	fmt.Fprintf(errs, "rubicon: unknown command %q\n\n", args[0])
	usage(errs)
	return exitUsage
}

func usage(w io.Writer) {
	fmt.Fprint(w, "Usage: rubicon COMMAND [arguments]\n\nThe commands are:\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-10s %s\n", c.name, c.short)
	}
}

// version prints one line. A build from a work tree has no version and says so
// with Go's own word for it, "(devel)".
func version(_ context.Context, args []string, out, errs io.Writer) int {
	if len(args) > 0 {
		fmt.Fprintln(errs, "rubicon: version takes no arguments")
		return exitUsage
	}
	v := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		v = info.Main.Version
	}
	fmt.Fprintf(out, "rubicon %s %s %s/%s\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return exitOK
}
