#compdef postrider
# Asked of the program itself, so that both are always of one version.
source <(postrider completions zsh)
_clap_dynamic_completer_postrider "$@"
