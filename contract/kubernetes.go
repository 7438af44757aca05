package contract

// kubernetes is the contract of a watch of the Kubernetes API.
//
// One object a line, with the type of the change and the object that changed;
// the server ends the body when it likes, at the latest after timeoutSeconds
// (Kubernetes, "Efficient detection of changes"). The resourceVersion of the
// last object, which a bookmark has too, is where to watch from. An ERROR holds
// a Status: 410 Expired says that the version is too old and that a list is due.
func kubernetes() Contract {
	return Contract{
		Protocol: "kubernetes-watch",
		Framing:  Values | Lines,
		Paths: []string{
			"type", "object?", "object.kind?", "object.metadata?",
			"object.reason", "object.code", "object.message",
		},
		Cursor: "object.metadata.resourceVersion",
		EOF:    EOFEnds,
		Claim:  claimKubernetes,
		Read:   readKubernetes,
	}
}

// claimKubernetes takes a change by its type, together with what every object
// has.
func claimKubernetes(_ *Answer, f *Frame) Claim {
	if isChange(f.Get("type")) && f.Kind("object") == Object &&
		f.Kind("object.kind") == String && f.Kind("object.metadata") == Object {
		return Yes
	}
	return No
}

// isChange reports whether the text is a type of change (watch.EventType).
func isChange(text []byte) bool {
	switch string(text) {
	case "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR":
		return true
	}
	return false
}

// readKubernetes reads a change.
func readKubernetes(f *Frame, p *Progress) bool {
	if f.Is("type", "ERROR") {
		p.Fail(f.Get("object.reason"), f.Get("object.code"), f.Get("object.message"))
	}
	return isChange(f.Get("type"))
}
