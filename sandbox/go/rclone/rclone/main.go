// SPDX-License-Identifier: Apache-2.0

// rclone with the backends and the commands that a copy of a snapshot needs: the whole program has
// a hundred backends, whose libraries take most of the time of a build.
package main

import (
	_ "github.com/rclone/rclone/backend/local"
	_ "github.com/rclone/rclone/backend/s3"
	_ "github.com/rclone/rclone/backend/swift"
	"github.com/rclone/rclone/cmd"
	_ "github.com/rclone/rclone/cmd/copy"
	_ "github.com/rclone/rclone/cmd/copyto"
	_ "github.com/rclone/rclone/cmd/delete"
	_ "github.com/rclone/rclone/cmd/lsf"
	_ "github.com/rclone/rclone/cmd/version"
)

func main() {
	cmd.Main()
}
