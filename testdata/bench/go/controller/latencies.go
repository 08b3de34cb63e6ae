// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bufio"
	"fmt"
	"os"
	"sync"
	"time"
)

// sentAnnotation contains the time of the last change by the driver, in nanoseconds since 1970.
const sentAnnotation = "bench.example.com/sent"

// Latencies records when the reconciles of annotated objects started.
type Latencies struct {
	mutex sync.Mutex
	seen  []pair
}

type pair struct {
	sent string
	now  int64
}

// Record adds the current time if the annotations contain the time of a change.
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

// Write writes a line for each record to a file: the time of the change and of the reconcile.
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
