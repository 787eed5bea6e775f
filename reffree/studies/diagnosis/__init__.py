"""What in a corpus makes reference-free metrics mislead, and which of them notice damage."""
