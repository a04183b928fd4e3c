# Every function of tenfold under the name that other packages import it by. They are taken when this is loaded, so that
# they are those of the tenfold that is installed then.
.onLoad <- function(libname, pkgname) {
  own <- topenv(environment())
  for (name in getNamespaceExports("tenfold")) assign(name, getExportedValue("tenfold", name), envir = own)
}
