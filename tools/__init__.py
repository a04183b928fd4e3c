"""Small scripts for those who work on Tenfold; none of them is installed with it."""
