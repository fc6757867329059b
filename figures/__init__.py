"""The figures of the chapter: one function each, for print, for the screen and to be explored."""
