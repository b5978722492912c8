//! Commands, their class, and a word that decided: what is written here is what users are told.
//!
//! Rows are tab-free text, `class | deciding word | command`; `\n` and `\t` stand for what they are.

use backout_shell::{Class, classify, classify_words};

fn class(text: &str) -> Class {
    match text {
        "reads" => Class::ReadOnly,
        "writes" => Class::Writes,
        "unknown" => Class::Unknown,
        other => panic!("{other} is no class"),
    }
}

/// Compares every row and shows all that differ.
#[track_caller]
fn check(rows: &str) {
    let mut wrong = Vec::new();
    for row in rows.lines().map(str::trim).filter(|row| !row.is_empty()) {
        let mut parts = row.splitn(3, " | ");
        let (expected, word) = (
            class(parts.next().unwrap().trim()),
            parts.next().unwrap().trim(),
        );
        let unescaped = |text: &str| text.replace("\\n", "\n").replace("\\t", "\t");
        let (word, command) = (unescaped(word), unescaped(parts.next().unwrap()));
        let verdict = classify(&command);
        let names_it = word == "-" || verdict.words.iter().any(|decided| *decided == word);
        if verdict.class != expected || !names_it {
            wrong.push(format!(
                "{command}\n    is {} because {}, by {:?}",
                verdict.class, verdict.because, verdict.words
            ));
        }
        assert!(!verdict.because.is_empty(), "{command}");
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn readers_and_writers() {
    check(
        r#"
        reads | ls | ls
        reads | ls | ls -la /tmp
        reads | /bin/ls | /bin/ls
        reads | l\s | l\s
        reads | cat | cat a b
        reads | grep | grep -rn 'rm -rf' .
        reads | rg | rg -n pattern src
        reads | head | head -5 a
        reads | wc | wc -l a
        reads | stat | stat a
        reads | file | file a
        reads | du | du -sh .
        reads | ps | ps aux
        reads | pwd | pwd
        reads | echo | echo 'rm -rf /'
        reads | echo | echo "rm; rm" 'rm' \; rm
        reads | printf | printf '%s\n' a
        reads | test | test -f a
        reads | [ | [ -f a ]
        reads | true | true
        reads | which | which ls
        reads | uname | uname -a
        reads | jq | jq .a x.json
        reads | diff | diff a b
        reads | sha256sum | sha256sum a
        reads | rm | rm --help
        reads | docker | docker --version
        writes | rm | rm a
        writes | rm | rm -rf /
        writes | 'rm' | 'rm' a
        writes | "r"m | "r"m a
        writes | \rm | \rm a
        writes | $'rm' | $'rm' a
        writes | /bin/rm | /bin/rm a
        writes | mv | mv a b
        writes | cp | cp a b
        writes | mkdir | mkdir a
        writes | touch | touch a
        writes | chmod | chmod +x a
        writes | ln | ln -s a b
        writes | truncate | truncate -s 0 a
        writes | patch | patch -p1
        writes | kill | kill 1
        writes | apt-get | apt-get install x
        writes | mount | mount /dev/sda /mnt
        unknown | ./ls | ./ls
        unknown | frobnicate | frobnicate
        unknown | python3 | python3 -c 'print(1)'
        unknown | make | make
        unknown | docker | docker ps
        unknown | ssh | ssh host ls
        unknown | vim | vim a
        unknown | sqlite3 | sqlite3 a.db
        unknown | less | less a
        unknown | zsh | zsh -c ls
        "#,
    );
}

#[test]
fn flags_that_write() {
    check(
        r#"
        reads | sort | sort a
        reads | sort | sort -k 2 -t , a
        reads | sort | sort -rn a
        reads | sort | sort -- -o
        writes | -o | sort -o b a
        writes | -ob | sort -ob a
        writes | -nro | sort -nro b a
        writes | --output=b | sort --output=b a
        writes | --output | sort --output b a
        writes | --outp=b | sort --outp=b a
        writes | --o | sort --o b a
        writes | -o | sort a -o b
        unknown | --compress-program=x | sort --compress-program=x a
        reads | uniq | uniq a
        reads | uniq | uniq -f 1 a
        reads | uniq | sort a | uniq -c
        writes | b | uniq a b
        writes | b | uniq -c a b
        unknown | *.txt | uniq *.txt
        reads | xxd | xxd a
        writes | b | xxd a b
        writes | b | xxd -r a b
        reads | date | date
        reads | date | date +%s
        reads | date | date -d yesterday +%s
        writes | -s | date -s now
        writes | --set=now | date --set=now
        writes | 01010000 | date 01010000
        unknown | "$X" | date "$X"
        reads | hostname | hostname
        writes | box | hostname box
        reads | tree | tree -L 2
        writes | -o | tree -o a
        writes | -C | file -C -m a
        unknown | --pre | rg --pre x y
        unknown | -x | fd -x rm
        reads | yq | yq .a b.yml
        writes | -i | yq -i .a=1 b.yml
        writes | -K | ss -K
        reads | ss | ss -tlnp
        writes | --vacuum-time=1d | journalctl --vacuum-time=1d
        reads | journalctl | journalctl -u x -n 5
        reads | tee | echo a | tee
        reads | tee | echo a | tee /dev/null
        writes | b | echo a | tee b
        writes | b | echo a | tee -a b
        reads | dd | dd if=a
        reads | dd | dd if=a of=/dev/null
        writes | of=b | dd if=a of=b
        unknown | $X | dd if=a $X
        reads | tf | tar tf a.tar
        reads | -tvf | tar -tvf a.tar
        reads | --list | tar --list -f a.tar
        writes | xf | tar xf a.tar
        writes | -czf | tar -czf a.tar b
        writes | --extract | tar --extract -f a.tar
        writes | --extr | tar --extr -f a.tar
        unknown | -I | tar -t -I x -f a
        unknown | --checkpoint-action=exec=x | tar tf a.tar --checkpoint-action=exec=x
        reads | unzip | unzip -l a.zip
        writes | unzip | unzip a.zip
        reads | gzip | gzip -dc a.gz
        reads | gzip | cat a | gzip
        writes | gzip | gzip a
        unknown | curl | curl http://x
        writes | -o | curl -o a http://x
        writes | -O | curl -O http://x
        writes | -sSLo | curl -sSLo a http://x
        writes | wget | wget http://x
        unknown | wget | wget -qO- http://x
        reads | crontab | crontab -l
        writes | crontab | crontab a
        reads | status | systemctl status x
        writes | restart | systemctl restart x
        reads | dpkg | dpkg -l
        writes | dpkg | dpkg -i a.deb
        "#,
    );
}

#[test]
fn scripts_of_sed_and_awk() {
    check(
        r#"
        reads | sed | sed -n '1,5p' a
        reads | sed | sed 's/a/b/g' a
        reads | sed | sed -e 's/w/e/' -e '/x/d' a
        reads | sed | sed -E 's#(a|b)#\1#g;p' a
        reads | sed | sed '$!d' a
        reads | sed | sed '/^$/,/x/{s/a/b/;p}' a
        reads | sed | sed 'a\w text' a
        writes | -i | sed -i s/a/b/ a
        writes | -i.bak | sed -i.bak s/a/b/ a
        writes | -ni | sed -ni p a
        writes | -Ei | sed -Ei s/a/b/ a
        writes | --in-place | sed --in-place s/a/b/ a
        writes | --in-pl | sed --in-pl s/a/b/ a
        writes | --in-place=.b | sed --in-place=.b s/a/b/ a
        writes | -i | sed s/a/b/ a -i
        writes | 's/a/b/w out' | sed 's/a/b/w out' a
        writes | 'w out' | sed -n 'w out' a
        writes | '/x/w out' | sed '/x/w out' a
        writes | 'p;w out' | sed 'p;w out' a
        writes | '1!{W out\n}' | sed '1!{W out\n}' a
        unknown | 's/a/b/e' | sed 's/a/b/e' a
        unknown | '1e rm x' | sed '1e rm x' a
        unknown | -f | sed -f script a
        unknown | "$X" | sed "$X" a
        unknown | "s/a/$X/" | sed "s/a/$X/" a
        unknown | $X | sed -n p $X
        reads | awk | awk '{print $1}' a
        reads | awk | awk -F: '{print $1}' /etc/passwd
        reads | awk | awk '$3 > 5 {print $1}' a
        reads | awk | awk '/a|b/' x
        reads | awk | awk -v x="$X" '{print x}' a
        unknown | awk | awk '{print > "x"}' a
        unknown | awk | awk '{print | "sh"}' a
        unknown | awk | awk '{system("rm x")}' a
        unknown | awk | awk '"rm x" | getline' a
        unknown | -f | awk -f prog a
        unknown | -i | gawk -i inplace '{print}' a
        unknown | "$X" | awk "$X" a
        unknown | "{print $1}" | awk "{print $1}" a
        "#,
    );
}

#[test]
fn git_and_build_tools() {
    check(
        r#"
        reads | log | git log --oneline -5
        reads | show | git show HEAD
        reads | blame | git blame a
        reads | rev-parse | git rev-parse HEAD
        reads | ls-files | git -C dir ls-files
        reads | grep | git grep foo
        reads | log | git --no-pager log
        reads | log | PAGER=cat git log
        reads | branch | git branch
        reads | branch | git branch -a
        reads | branch | git branch --show-current
        reads | tag | git tag
        reads | tag | git tag -l 'v*'
        reads | remote | git remote -v
        reads | stash | git stash list
        reads | config | git config --get user.name
        reads | config | git config user.name
        reads | diff | git diff --cached
        reads | status | git --no-optional-locks status
        reads | worktree | git worktree list
        unknown | status | git status
        unknown | status | git status --short
        unknown | diff | git diff
        unknown | lg | git lg
        unknown | -c | git -c core.pager=rm log
        unknown | --exec-path=x | git --exec-path=x log
        unknown | -p | git -p log
        unknown | -O | git grep -O foo
        unknown | $X | git log $X
        unknown | $X | git $X
        unknown | GIT_DIR=x | GIT_DIR=x git log
        writes | --output=x | git log --output=x
        writes | --output=x | git diff --output=x
        writes | add | git add a
        writes | commit | git commit -m x
        writes | push | git push
        writes | checkout | git checkout a
        writes | branch | git branch foo
        writes | branch | git branch -D foo
        writes | tag | git tag v1
        writes | remote | git remote add a b
        writes | stash | git stash
        writes | stash | git stash pop
        writes | config | git config user.name x
        writes | config | git config --unset user.name
        writes | worktree | git worktree add a
        reads | cargo | cargo --version
        reads | cargo | cargo -V
        writes | build | cargo build
        writes | test | cargo test
        writes | fmt | cargo fmt
        unknown | tree | cargo tree
        unknown | frob | cargo frob
        writes | install | npm install
        unknown | run | npm run x
        reads | list | pip list
        writes | install | pip install x
        unknown | npx | npx x
        "#,
    );
}

#[test]
fn commands_that_run_commands() {
    check(
        r#"
        reads | ls | env ls
        reads | ls | env -i FOO=1 ls
        reads | env | env
        writes | rm | env FOO=1 rm a
        writes | rm | env -u X rm a
        unknown | LD_PRELOAD=x | env LD_PRELOAD=x ls
        unknown | -S | env -S 'rm a'
        reads | ls | sudo ls
        reads | ls | sudo -u x ls
        writes | rm | sudo rm a
        writes | rm | sudo -n -u x -- rm a
        writes | -e | sudo -e a
        unknown | -i | sudo -i
        writes | rm | sudo bash -c 'rm a'
        reads | cat | ls | xargs cat
        reads | grep | ls | xargs -0 -n1 grep foo
        writes | rm | ls | xargs rm
        writes | rm | ls | xargs -I{} rm {}
        writes | rm | ls | xargs -I % sh -c 'rm a'
        unknown | … | ls | xargs sort
        unknown | {} | ls | xargs -I{} sort {}
        unknown | 'cat {}' | ls | xargs -I{} sh -c 'cat {}'
        unknown | … | ls | xargs bash
        unknown | {} | ls | xargs -I{} {}
        reads | find | find . -name '*.rs'
        reads | find | find . -name "$X"
        reads | grep | find . -exec grep foo {} +
        reads | sort | find . -exec sort {} \;
        writes | -delete | find . -delete
        writes | -fprint | find . -fprint a
        writes | -fls | find . -fls a
        writes | rm | find . -exec rm {} \;
        writes | rm | find . -execdir rm {} +
        writes | rm | find . -ok rm {} ';'
        unknown | + | find . -exec env + rm {} \;
        writes | rm | find . -exec ls {} \; -exec rm {} \;
        unknown | 'cat {}' | find . -exec sh -c 'cat {}' \;
        unknown | $X | find $X
        unknown | "$X" | find "$X" -name a
        unknown | *.rs | find . -name *.rs
        reads | ls | bash -c ls
        reads | ls | bash -euo pipefail -c 'ls | cat'
        writes | rm | bash -c 'ls; rm a'
        writes | rm | sh -c "rm a"
        writes | rm | bash -c 'bash -c "rm a"'
        writes | rm | bash -lc 'rm a'
        unknown | -lc | bash -lc ls
        unknown | bash | echo rm x | bash
        unknown | bash | bash
        unknown | a.sh | bash a.sh
        unknown | "$X" | bash -c "$X"
        unknown | ((a > b)) | sh -c '((a > b))'
        writes | rm | bash <<'E'\nrm a\nE
        reads | cat | bash <<'E'\ncat a\nE
        unknown | bash | bash 3<<'E'\ncat a\nE
        unknown | bash | bash <<E\n$X\nE
        writes | rm | bash <<< 'rm a'
        reads | ls | time ls
        writes | rm | time rm a
        writes | rm | time -p rm a
        writes | -o | env time -o a ls
        reads | ls | nice -n 5 ls
        writes | rm | nice rm a
        reads | ls | timeout 5 ls
        writes | rm | timeout -k 1 5 rm a
        writes | rm | stdbuf -oL rm a
        unknown | nohup | nohup ls
        writes | rm | nohup rm a
        writes | flock | flock a ls
        writes | rm | watch rm a
        reads | ls | watch -n 1 ls
        writes | rm | command rm a
        reads | command | command -v rm
        writes | rm | builtin eval 'rm a'
        writes | rm | exec rm a
        writes | rm | busybox rm a
        "#,
    );
}

#[test]
fn the_shell_itself() {
    check(
        r#"
        reads | cd | cd /tmp
        reads | ls | cd /tmp && ls
        reads | export | export FOO=1
        reads | set | set -euo pipefail
        reads | read | while IFS= read -r l; do echo "$l"; done
        reads | - | FOO=1
        reads | ls | FOO=1 ls
        reads | ls | LC_ALL=C TZ=UTC ls
        writes | rm | eval 'rm a'
        writes | rm | eval rm a
        unknown | eval | eval "$X"
        unknown | source | source a.sh
        unknown | . | . a.sh
        writes | rm | trap 'rm a' EXIT
        unknown | "$X" | trap "$X" EXIT
        reads | trap | trap - EXIT
        writes | rm | coproc rm a
        writes | rm | coproc x { rm a; }
        writes | rm | ls & rm a
        reads | ls | ls &
        unknown | alias | alias ls=rm
        unknown | hash | hash -p /bin/rm ls
        unknown | enable | enable -f x y
        unknown | LD_PRELOAD=x | LD_PRELOAD=x ls
        unknown | PATH=. | PATH=. ls
        unknown | PATH=. | export PATH=.
        unknown | IFS=x | IFS=x
        unknown | BASH_ENV=x | BASH_ENV=x bash -c ls
        unknown | PAGER=rm | PAGER=rm git log
        unknown | EDITOR=x | EDITOR=x ls
        unknown | PATH | for PATH in .; do ls; done
        unknown | PATH | read PATH
        unknown | PATH | printf -v PATH .
        unknown | ls | ls() { :; }; ls
        writes | rm | f() { rm a; }
        writes | rm | function f { rm a; }
        unknown | $X | $X
        unknown | $X/ls | $X/ls
        unknown | - | $(echo ls)
        unknown | r{m,} | r{m,} a
        unknown | l? | l?
        unknown | ${X@P} | echo ${X@P}
        unknown | -i | declare -i x=y
        unknown | 'a[$(rm x)]' | test -v 'a[$(rm x)]'
        unknown | x='a[$(rm y)]' | x='a[$(rm y)]'
        "#,
    );
}

#[test]
fn redirections() {
    check(
        r#"
        reads | ls | ls > /dev/null
        reads | ls | ls > /dev/null 2>&1
        reads | ls | ls 2>/dev/null >&2
        reads | ls | ls &> /dev/null
        reads | ls | ls 2>&-
        reads | cat | cat < a
        reads | cat | cat <<< a
        reads | cat | cat <<'E'\n$(rm x)\nE
        writes | > a | ls > a
        writes | >> a | ls >> a
        writes | >| a | ls >| a
        writes | &> a | ls &> a
        writes | &>> a | ls &>> a
        writes | >& a | ls >& a
        writes | 2> a | ls 2> a
        writes | <> a | ls <> a
        writes | > $X | ls > $X
        writes | > /dev/sda | ls > /dev/sda
        writes | > a | > a
        writes | > a | { ls; } > a
        writes | > a | ( ls ) > a
        writes | > a | while ls; do ls; done > a
        writes | > a | exec > a
        writes | > /dev/tcp/h/1 | ls > /dev/tcp/h/1
        unknown | /dev/tcp/h/1 | cat < /dev/tcp/h/1
        unknown | >& $X | ls >& $X
        writes | rm | cat <<E\n$(rm x)\nE
        writes | rm | cat <<-E\n\t$(rm x)\n\tE
        "#,
    );
}

#[test]
fn what_the_parser_would_miss() {
    check(
        r#"
        unknown | ((rm x)) | ( ( rm x ) )
        unknown | ((rm x)) | ((rm x) )
        unknown | - | ( (rm x))
        writes | rm | ( (rm x); ls )
        writes | rm | ((rm x); (ls))
        writes | rm | echo $((rm x); (ls))
        writes | rm | echo $((rm x) )
        writes | rm | echo $( (rm x) )
        writes | rm | (( x = $(rm y) ))
        writes | rm | echo $(( $(rm y) ))
        writes | rm | echo $(( a[$(rm y)] ))
        writes | rm | for ((i=0; i<$(rm y); i++)); do ls; done
        writes | rm | for ((i=$(rm y); ; )); do ls; done
        writes | rm | echo ${x:-$(rm y)}
        writes | rm | echo "${x:-$(rm y)}"
        writes | rm | echo "${x:-"$(rm y)"}"
        writes | rm | echo ${x:-`rm y`}
        writes | rm | echo ${x:$(rm y)}
        writes | rm | echo ${x[$(rm y)]}
        writes | rm | echo ${x/a/$(rm y)}
        unknown | - | echo "${x:-'$(rm y)'}"
        unknown | - | echo ${x#'}'}$(rm y)'z'
        unknown | - | echo ${x:-<(rm y)}
        unknown | - | echo ${ rm y; }
        unknown | - | echo $[ $(rm y) ]
        writes | rm | echo "$(ls  # )\n rm y)"
        writes | rm | echo "$(ls # ) \nrm y)"
        unknown | - | echo "$(ls  # " )\nrm y; echo ")"
        unknown | - | echo $(case x in a) rm y;; esac)
        writes | rm | echo "$(cat <<'E'\n) ' "\nE\nrm y)"
        reads | cat | echo "$(cat <<'E'\nit's ) here\nE\n)"
        writes | rm | !(rm y)
        writes | rm | ! rm y
        unknown | - | select x in a; do rm y; done
        unknown | - | echo 'unterminated
        unknown | - | if ls; then
        unknown | - | ls &&
        writes | rm | ls\nrm y
        writes | rm | ls \\nrm; rm y
        reads | ls | ls # rm y
        reads | echo | echo \$(rm y
        reads | echo | echo '$(rm y)'
        reads | echo | echo \`rm y\`
        writes | rm | diff <(ls) <(rm y)
        writes | rm | ls > >(rm y)
        writes | rm | cat < <(rm y)
        writes | rm | a=(1 $(rm y))
        writes | rm | a[$(rm y)]=1
        writes | rm | declare a=$(rm y)
        writes | rm | [[ -n $(rm y) ]]
        writes | rm | [[ a =~ $(rm y) ]]
        unknown | - | [[ 'a[$(rm y)]' -eq 1 ]]
        writes | rm | case $(rm y) in a) ls;; esac
        writes | rm | case a in $(rm y)) ls;; esac
        unknown | $'\x2do' | sort $'\x2do' b
        unknown | {a,-o,b} | sort {a,-o,b}
        unknown | -"$X" | sort -"$X" b
        reads | sort | sort ./*
        reads | sort | sort src/"$X"
        reads | sort | sort -k "$X" a
        unknown | src/$X | sort src/$X
        unknown | $X | sort -k $X a
        unknown | "$@" | sort "$@"
        unknown | a"$@" | sort a"$@"
        reads | sort | sort -- "$@"
        "#,
    );
}

#[test]
fn words_without_a_shell_stand_for_themselves() {
    for (argv, class) in [
        (vec!["ls", "*.x"], Class::ReadOnly),
        (vec!["sort", "*"], Class::ReadOnly),
        (vec!["sort", "$X"], Class::ReadOnly),
        (vec!["echo", "$(rm x)", ">", "y"], Class::ReadOnly),
        (vec!["ls", ";", "rm", "x"], Class::ReadOnly),
        (vec!["sort", "-o", "x"], Class::Writes),
        (vec!["rm", "x"], Class::Writes),
        (vec!["bash", "-c", "rm x"], Class::Writes),
        (vec!["find", ".", "-exec", "rm", "{}", ";"], Class::Writes),
        (vec!["FOO=1", "ls"], Class::Unknown),
        (vec!["frobnicate"], Class::Unknown),
        (
            vec!["bash", "-c", "((((((((((((((((((((((("],
            Class::Unknown,
        ),
        (vec![], Class::ReadOnly),
    ] {
        let verdict = classify_words(&argv);
        assert_eq!(verdict.class, class, "{argv:?}: {}", verdict.because);
    }
}

#[test]
fn words_that_are_no_text_are_unknown() {
    use std::os::unix::ffi::OsStrExt as _;
    let word = std::ffi::OsStr::from_bytes(b"a\xff");
    assert_eq!(
        classify_words(&[std::ffi::OsStr::new("ls"), word]).class,
        Class::Unknown
    );
}

#[test]
fn the_worst_part_speaks_for_the_line() {
    let verdict = classify("ls | frobnicate; rm x; mv a b");
    assert_eq!(verdict.class, Class::Writes);
    assert_eq!(verdict.words, ["rm"]);
    let classes: Vec<Class> = verdict
        .commands
        .iter()
        .map(|command| command.class)
        .collect();
    assert_eq!(
        classes,
        [
            Class::ReadOnly,
            Class::Unknown,
            Class::Writes,
            Class::Writes
        ]
    );
    assert!(Class::Writes.needs_capture() && Class::Unknown.needs_capture());
    assert!(!Class::ReadOnly.needs_capture());
}

#[test]
fn the_shape_of_a_verdict() {
    let json = serde_json::to_value(classify("ls > x")).unwrap();
    let expected = serde_json::json!({
        "class": "writes",
        "because": "`> x` writes a file",
        "words": ["> x"],
        "commands": [{
            "command": "ls > x",
            "class": "writes",
            "because": "`> x` writes a file",
            "words": ["> x"],
        }],
    });
    assert_eq!(json, expected);
    assert_eq!(serde_json::json!(classify("ls").class), "read-only");
}
