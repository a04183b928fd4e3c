# Every function of tenfold under the name that other packages import it by.
for (.name in getNamespaceExports("tenfold")) assign(.name, getExportedValue("tenfold", .name))
rm(.name)
