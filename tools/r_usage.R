# Rewrites the \usage sections of the R package's hand-written help pages from the installed functions.
# Rscript tools/r_usage.R bindings/r/man, with R_LIBS naming the library that `make r` installed into.
folder <- commandArgs(TRUE)[1]
exported <- getNamespaceExports("tenfold")

usage_of <- function(name) {
  fn <- if (name %in% exported && make.names(name) == name) getExportedValue("tenfold", name)
  if (!is.function(fn)) return(NULL)
  shown <- fn
  attributes(shown) <- NULL
  body(shown) <- quote(NULL)
  text <- paste(trimws(utils::head(deparse(shown, width.cutoff = 500), -1)), collapse = " ")
  text <- sub("^function ?", name, text)
  whole <- gsub(" = ", "\u00a0=\u00a0", gsub("...", "\\dots", text, fixed = TRUE), fixed = TRUE) # lines break after commas
  gsub("\u00a0", " ", paste(strwrap(whole, 88, exdent = 4), collapse = "\n"))
}

for (path in list.files(folder, "[.]Rd$", full.names = TRUE)) {
  lines <- readLines(path)
  aliases <- sub("^\\\\alias\\{(.*)\\}$", "\\1", grep("^\\\\alias\\{", lines, value = TRUE))
  start <- grep("^\\\\usage\\{", lines)
  if (length(start) != 1) next
  end <- start + which(lines[-seq_len(start)] == "}")[1]
  kept <- lines[start:end]
  usages <- Filter(Negate(is.null), lapply(aliases, usage_of))
  special <- grep("^\\\\method|^lhs", kept, value = TRUE)
  if (length(usages) == 0) next
  body <- c(strsplit(paste(c(unlist(usages), special), collapse = "\n\n"), "\n")[[1]])
  writeLines(c(lines[seq_len(start)], body, lines[end:length(lines)]), path)
}
