"""Small dense problems on the active set. They never see X: they ask the working set the three questions."""
