// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
)

const (
	// restartPause is how long a program that ended by itself is left alone.
	restartPause = time.Second
	// killAfter is how long a program may take to end.
	killAfter = 2 * time.Second
)

// program is a child process, in the log file of its name.
type program struct {
	name     string
	argv     []string
	restarts bool // kubelet starts it again when it ends
	log      logr.Logger

	cancel context.CancelFunc
	done   chan struct{}
}

// startProgram runs it until stop, or the end of the context.
func startProgram(ctx context.Context, log logr.Logger, folder, name string, restarts bool, argv []string) *program {
	running, cancel := context.WithCancel(ctx)
	made := &program{
		name: name, argv: argv, restarts: restarts, log: log.WithValues("program", name),
		cancel: cancel, done: make(chan struct{}),
	}
	go made.keep(running, filepath.Join(folder, name+".log"))
	return made
}

func (p *program) keep(ctx context.Context, path string) {
	defer close(p.done)
	for {
		err := p.once(ctx, path)
		if ctx.Err() != nil {
			return
		}
		p.log.Info("program ended by itself", "log", path, "error", err)
		if !p.restarts {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(restartPause):
		}
	}
}

func (p *program) once(ctx context.Context, path string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	command := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...)
	command.Stdout, command.Stderr = file, file
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = killAfter
	// No program outlives this one, however this one ends.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := onLastingThread(command.Start); err != nil {
		return err
	}
	return command.Wait()
}

// runs tells whether it has not ended for good.
func (p *program) runs() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// stop ends it and waits for its end.
func (p *program) stop() {
	if p != nil {
		p.cancel()
		<-p.done
	}
}

// lasting is a thread that never ends: a child is told of the end of the thread that made it, see
// PR_SET_PDEATHSIG in prctl(2).
var lasting = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for act := range work {
			act()
		}
	}()
	return work
})

func onLastingThread(act func() error) error {
	result := make(chan error, 1)
	lasting() <- func() { result <- act() }
	return <-result
}
