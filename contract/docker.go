package contract

import "bytes"

// docker is the contract of what the Docker Engine sends piece by piece: the
// progress of pull, push, build, load and import, and the events of the daemon.
//
// JSON objects, as application/json or as one of the kinds of lines or of
// sequence that are named so; the end of the body is the end. A failure is an
// object with an errorDetail, or with an error alone in older versions (Engine
// API, "ImageCreate"). Events have a time in nanoseconds, since which more can
// be asked for.
func docker() Contract {
	return Contract{
		Protocol: "docker",
		Framing:  Values | Lines | Sequence,
		Paths: []string{
			"status", "stream", "id", "progressDetail?", "aux?", "aux.ID?",
			"error", "errorDetail?", "errorDetail.code", "errorDetail.message",
			"Type?", "Action?", "Actor?",
		},
		Cursor: "timeNano",
		EOF:    EOFEnds,
		Claim:  claimDocker,
		Read:   readDocker,
	}
}

// claimDocker takes what other lines with a status don't have. Ollama's begin
// alike and end otherwise.
func claimDocker(_ *Answer, f *Frame) Claim {
	if f.Kind("progressDetail") == Object || f.Kind("errorDetail") == Object || isDockerEvent(f) ||
		isDockerStep(f.Get("stream")) || isDockerStatus(f.Get("status")) ||
		f.Is("id", "moby.buildkit.trace") && f.Kind("aux") == String {
		return Yes
	}
	return Maybe
}

// isDockerEvent reports whether f is an event of the daemon.
func isDockerEvent(f *Frame) bool {
	return f.Kind("Type") == String && f.Kind("Action") == String && f.Kind("Actor") == Object
}

// isDockerStep reports whether a build begins with the line.
func isDockerStep(line []byte) bool {
	return bytes.HasPrefix(line, []byte("Step 1/")) && bytes.Contains(line, []byte(" : "))
}

// isDockerStatus reports whether a pull or a push begins with the status.
func isDockerStatus(status []byte) bool {
	return bytes.HasPrefix(status, []byte("Pulling from ")) || bytes.Contains(status, []byte(": Pulling from ")) ||
		bytes.HasPrefix(status, []byte("The push refers to "))
}

// readDocker reads an object.
func readDocker(f *Frame, p *Progress) bool {
	if f.Kind("errorDetail") == Object || f.Has("error") {
		message := f.Get("errorDetail.message")
		if message == nil {
			message = f.Get("error")
		}
		p.Fail(nil, f.Get("errorDetail.code"), message)
		return true
	}
	return f.Kind("status") == String || f.Kind("stream") == String || f.Kind("aux") != Absent ||
		f.Kind("id") == String || isDockerEvent(f)
}
