// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bufio"
	"fmt"
	"os"
	"sync"
	"time"
)

// sentAnnotation holds when the object was last touched, in nanoseconds since 1970.
const sentAnnotation = "bench.example.com/sent"

// Latencies notes when a reconcile began for an object that says when it was touched.
type Latencies struct {
	mutex sync.Mutex
	seen  []pair
}

type pair struct {
	sent string
	now  int64
}

// Record notes the moment, if the annotations say when the object was touched.
func (l *Latencies) Record(annotations map[string]string) {
	sent, ok := annotations[sentAnnotation]
	if !ok {
		return
	}
	now := time.Now().UnixNano()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.seen = append(l.seen, pair{sent, now})
}

// Write puts a line per record into a file: the moment of sending and that of reconciling.
func (l *Latencies) Write(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewWriter(file)
	for _, pair := range l.seen {
		fmt.Fprintf(lines, "%s %d\n", pair.sent, pair.now)
	}
	return lines.Flush()
}
