# Asked of the program itself, so that both are always of one version.
postrider completions fish | source
