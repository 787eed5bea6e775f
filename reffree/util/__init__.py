"""What any room may use: errors, options, files, progress."""
