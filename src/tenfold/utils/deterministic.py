"""`utils.deterministic`: whether memory that nothing has written yet is filled. It always is: `empty` gives
zeros."""

fill_uninitialized_memory = True
