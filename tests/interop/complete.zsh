#!/usr/bin/env zsh
# SPDX-License-Identifier: BSD-2-Clause
# complete.zsh FOLDER LINE...: prints what zsh offers with the completion functions of
# FOLDER at the end of each command line, as "LINE: WORD", then "LINE.".
zmodload zsh/zpty || exit 77
folder=${1:a} results=$(mktemp)
trap 'rm -f $results; zpty -d shell 2> /dev/null' EXIT

# what the interactive shell runs
setup=$(mktemp)
cat > $setup <<'SETUP'
PS1= PS2= RPS1=
fpath=($folder $fpath)
autoload -Uz compinit && compinit -D -u
bindkey -e
setopt no_beep
zstyle ':completion:*' verbose no
compadd() {
	# calls that only fill an array add no word
	if [[ ${(j: :)@[1,(i)(-|--)]} = *-(O|A|D)\ * ]]; then
		builtin compadd "$@"
		return
	fi
	typeset -a found
	builtin compadd -A found "$@"
	(( $#found )) && print -rl -- $IPREFIX${^found} >> $results
	builtin compadd "$@"
}
complete-and-mark() {
	zle complete-word
	print -r -- "." >> $results
}
zle -N complete-and-mark
bindkey '^I' complete-and-mark
print -r -- "." >> $results
SETUP

await_end() {
	local i junk
	for i in {1..1000}; do
		[[ $(tail -n 1 $results) = . ]] && return
		zpty -rt shell junk
		sleep 0.02
	done
	print -u 2 "complete.zsh: no answer: $(<$results)"
	exit 1
}

zpty shell "results=${(q)results} folder=${(q)folder} TERM=dumb zsh -f -i"
zpty -w shell "results=${(q)results} folder=${(q)folder}; source ${(q)setup}"
await_end
for line in $@[2,-1]; do
	: > $results
	zpty -n -w shell $line$'\t'
	await_end
	while IFS= read -r word; do
		[[ $word = . ]] || print -r -- "$line: $word"
	done < $results
	print -r -- "$line."
	zpty -n -w shell $'\C-e\C-u'
done
rm -f $setup
