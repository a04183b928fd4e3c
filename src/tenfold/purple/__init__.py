"""Purple: a small Lisp whose values include tensors, interpreted on the Trace and compiled to C99 on
libtenfold, its memory freed at points that the compiler chooses."""
