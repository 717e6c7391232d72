# Asked of the program itself, so that both are always of one version.
source <(postrider completions bash)
