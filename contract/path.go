package contract

import (
	"fmt"
	"strings"
)

// maxNest is how deep a path may lead.
const maxNest = 12

// A trie finds the values that paths lead to.
type trie struct {
	nodes  []node
	paths  []string // by leaf
	cursor int16    // the leaf of the cursor; -1: none
}

// A node is a place in JSON values.
type node struct {
	keys []string // of an object's members that matter
	next []int16  // the members' nodes
	elem int16    // the node of an array's elements; 0: they don't matter
	leaf int16    // index of the path that ends here; -1: none
	mute bool     // that path asks for the kind of the value only
	tap  bool     // the value is a string that holds the data in base64
}

// child returns the node of the member with the given key, or -1.
func (t *trie) child(at int16, key []byte) int16 {
	n := &t.nodes[at]
	for i, k := range n.keys {
		if string(key) == k {
			return n.next[i]
		}
	}
	return -1
}

// newTrie returns a trie without paths.
func newTrie() *trie { return &trie{nodes: []node{{leaf: -1}}, cursor: -1} }

// addAll adds paths, and that of wrapped data unless it is empty.
func (t *trie) addAll(paths []string, inside string) error {
	for _, p := range paths {
		if err := t.add(p); err != nil {
			return err
		}
	}
	if inside == "" {
		return nil
	}
	return t.tap(inside)
}

// add adds a path. A path that asks for a value overrules the same one that
// asks for its kind only.
func (t *trie) add(path string) error {
	bare := strings.TrimSuffix(path, "?")
	at := int16(0)
	steps := strings.Split(strings.ReplaceAll(bare, "[]", ".[]"), ".")
	if len(steps) > maxNest {
		return fmt.Errorf("rubicon: path %q leads too deep", path)
	}
	for i, step := range steps {
		switch {
		case step == "" && i == 0 && len(steps) > 1:
			// the path begins with the elements of the outermost array
		case step == "":
			return fmt.Errorf("rubicon: path %q has an empty step", path)
		default:
			at = t.step(at, step)
		}
	}
	n := &t.nodes[at]
	mute := bare != path
	if n.leaf >= 0 {
		n.mute = n.mute && mute
		return nil
	}
	n.leaf, n.mute = int16(len(t.paths)), mute
	t.paths = append(t.paths, bare)
	return nil
}

// tap makes the string at path one that holds the data.
func (t *trie) tap(path string) error {
	if err := t.add(path); err != nil {
		return err
	}
	at := int16(0)
	for _, step := range strings.Split(path, ".") {
		at = t.step(at, step)
	}
	t.nodes[at].tap = true
	return nil
}

// step returns the node that one step leads to.
func (t *trie) step(at int16, step string) int16 {
	fresh := int16(len(t.nodes))
	if step == "[]" {
		if to := t.nodes[at].elem; to > 0 {
			return to
		}
		t.nodes[at].elem = fresh
	} else {
		if to := t.child(at, []byte(step)); to >= 0 {
			return to
		}
		n := &t.nodes[at]
		n.keys = append(n.keys, step)
		n.next = append(n.next, fresh)
	}
	t.nodes = append(t.nodes, node{leaf: -1})
	return fresh
}
