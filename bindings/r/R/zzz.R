# Last of the files: what needs all of the others.

collect_members()
