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
  if (!name %in% getNamespaceExports("tenfold") && !startsWith(name, "torch_")) refuse("the package has no function ", name, kind = "NOT_FOUND")
  fn <- get0(name, topenv(environment()), mode = "function")
  if (is.null(fn)) refuse("the package has no function ", name, kind = "NOT_FOUND")
  fn(...)
}
