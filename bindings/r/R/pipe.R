# x %>% f(y) is f(x, y), and `call_torch_function` calls a function of the package by its name.

`%>%` <- function(lhs, rhs) {
  rhs <- substitute(rhs)
  frame <- parent.frame()
  if (is.name(rhs) || identical(rhs[[1]], as.name("function")) || identical(rhs[[1]], as.name("("))) return(eval(rhs, frame)(lhs))
  named <- vapply(as.list(rhs)[-1], identical, TRUE, as.name("."))
  call <- if (any(named)) rhs else as.call(append(as.list(rhs), quote(.), 1))
  eval(call, list(. = lhs), frame)
}

call_torch_function <- function(name, ..., quiet = FALSE) {
  if (!startsWith(name, "torch_")) refuse("call_torch_function takes the name of a function that begins with torch_, not ", name, kind = "NOT_FOUND")
  fn <- get0(name, topenv(environment()), mode = "function")
  if (is.null(fn)) refuse("the package has no function ", name, ": check your spelling", kind = "NOT_FOUND")
  if (!quiet) warning("call_torch_function allows access to unexported functions, please use with caution", call. = FALSE)
  do.call(fn, spliced(substitute(list(...)), parent.frame()))
}

# The arguments of a call, of which f(!!!list(a, b)) gives those of a list.
spliced <- function(call, frame) {
  found <- list()
  for (i in seq_along(call)[-1]) {
    inner <- call[[i]]
    for (depth in 1:3) inner <- if (is.call(inner) && identical(inner[[1]], as.name("!"))) inner[[2]] else NULL
    value <- if (is.null(inner)) list(eval(call[[i]], frame)) else as.list(eval(inner, frame))
    if (is.null(inner) && nzchar(names(call)[i] %||% "")) names(value) <- names(call)[i]
    found <- c(found, value)
  }
  found
}

`%||%` <- function(x, otherwise) if (is.null(x) || length(x) == 0) otherwise else x
