// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"sandbox/clusterapi/machines/tenant"
)

// TestSweepingLeavesOtherFiles: without a folder of tenants nothing is deleted, wherever this program runs.
func TestSweepingLeavesOtherFiles(t *testing.T) {
	s, place := newStage(t), t.TempDir()
	t.Chdir(place)
	own := filepath.Join(place, "directory", "file")
	if err := os.MkdirAll(filepath.Dir(own), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.player.sweepFolders(t.Context(), tenant.Options{}); err != nil {
		t.Error(err)
	}
	if err := s.player.sweepFolders(t.Context(), tenant.Options{Folder: "."}); err == nil {
		t.Error("a folder that is no absolute path is swept")
	}
	if _, err := os.Stat(own); err != nil {
		t.Error(err)
	}
}

// TestSweepingEndsDeletedClusters: what is left of a cluster that is no longer there goes, another one stays.
func TestSweepingEndsDeletedClusters(t *testing.T) {
	s, place := newStage(t), t.TempDir()
	there, gone := filepath.Join(place, namespace, "c"), filepath.Join(place, namespace, "gone")
	if err := errors.Join(os.MkdirAll(there, 0o700), os.MkdirAll(gone, 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := s.player.sweepFolders(t.Context(), tenant.Options{Folder: place}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(there); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(gone); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the folder of a deleted cluster is still there")
	}
}
