# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# shellcheck shell=bash
#
# Completion of the pinhole command for bash. Subcommands, their options, files, and behind `call FILE` and `snapshot
# save FILE --call` the functions that the file exports, which it asks `pinhole functions` for.

_pinhole() {
    local current=${COMP_WORDS[COMP_CWORD]} previous=
    if ((COMP_CWORD > 0)); then
        previous=${COMP_WORDS[COMP_CWORD - 1]}
    fi
    COMPREPLY=()

    # Bash splits --option=value and FORMAT:PATH into three words. A sign that is the last word has nothing behind it
    # yet; the option before an equals sign is the one whose value this is.
    if [[ $current == '=' && $previous == --* ]]; then
        current=
    elif [[ $previous == '=' ]] && ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[COMP_CWORD - 2]} == --* ]]; then
        previous=${COMP_WORDS[COMP_CWORD - 2]}
    elif [[ $current == ':' ]]; then
        current=
    fi

    # The words so far: the subcommand, and what stands behind its options. An option whose value is a word of its
    # own takes that word along.
    local subcommand='' file='' operands=0 called=0 index word skip=0
    for ((index = 1; index < COMP_CWORD; index++)); do
        word=${COMP_WORDS[index]}
        if ((skip)); then
            skip=0
            # --option=value
            if [[ $word == '=' ]]; then
                skip=1
            fi
            continue
        fi
        if [[ -z $subcommand ]]; then
            case $word in
            --backend) skip=1 ;;
            -*) ;;
            *) subcommand=$word ;;
            esac
        elif [[ $subcommand == snapshot && $word != -* ]]; then
            subcommand="snapshot $word"
        elif [[ $subcommand == 'snapshot save' ]]; then
            # Its options stand on both sides of FILE. --call is the last, and FUNCTION and its arguments follow.
            if ((called)); then
                continue
            fi
            case $word in
            --call) called=1 ;;
            -o | --memory | --timeout | --cpu-time | --max-* | --file | --host | --backend | --trace | --trace-* | --traceparent | --flush-timeout) skip=1 ;;
            [=:]) skip=1 ;;
            -*) ;;
            *) file=$word ;;
            esac
        elif ((operands == 0)) && [[ $word == --?* ]]; then
            case $word in
            --memory | --timeout | --cpu-time | --max-* | --env | --file | --host | --repeat | --snapshot | --backend | --trace | --trace-* | --traceparent | --flush-timeout | --metrics-listen) skip=1 ;;
            esac
        elif ((operands == 0)) && [[ $word == [=:] ]]; then
            skip=1 # NAME=VALUE and FORMAT:PATH are three words too
        elif ((operands == 0)) && [[ $word == -- ]]; then
            continue
        else
            if ((operands == 0)); then
                file=$word
            fi
            ((operands += 1))
        fi
    done

    case $previous in
    --backend)
        mapfile -t COMPREPLY < <(compgen -W 'auto kvm soft' -- "$current")
        return
        ;;
    --trace)
        mapfile -t COMPREPLY < <(compgen -W 'text jsonl otlp text: jsonl: otlp: otlp-json: html: perfetto: chrome: ctf: folded: speedscope:' -- "$current")
        compopt -o nospace 2>/dev/null
        return
        ;;
    --trace-level)
        mapfile -t COMPREPLY < <(compgen -W 'off error warn info debug trace' -- "$current")
        return
        ;;
    --trace-policy)
        mapfile -t COMPREPLY < <(compgen -W 'complete drop flight' -- "$current")
        return
        ;;
    --metrics-listen)
        # An address has colons, at which bash splits words: only the usual one, while there is nothing yet.
        if [[ -z $current ]]; then
            COMPREPLY=('127.0.0.1:9464')
        fi
        return
        ;;
    --file | --snapshot | -o)
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
        ;;
    --memory | --timeout | --cpu-time | --max-* | --env | --host | --repeat | --trace-filter | --trace-ring | --traceparent | --flush-timeout)
        return
        ;;
    esac

    if [[ -z $subcommand ]]; then
        mapfile -t COMPREPLY < <(compgen -W 'run call functions snapshot doctor help --backend --help --version' -- "$current")
        return
    fi

    if ((operands == 0 && !called)) && [[ $current == -* && $previous != [=:] ]]; then
        local options='--help' trace='--trace --trace-level --trace-filter --trace-policy --trace-ring --traceparent --flush-timeout'
        case $subcommand in
        run) options+=" --memory --timeout --cpu-time --max-output --max-host-calls --env --file --stdin --metrics-listen --backend $trace" ;;
        call) options+=" --memory --timeout --cpu-time --max-output --max-host-calls --max-message --host --file --snapshot --raw --repeat --restore --stats --metrics-listen --backend $trace" ;;
        functions | 'snapshot info') options+=' --json' ;;
        'snapshot save') options+=" -o --call --memory --timeout --cpu-time --max-output --max-host-calls --max-message --host --file --backend $trace" ;;
        doctor) options+=' --json' ;;
        esac
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
        return
    fi

    case $subcommand in
    snapshot | help)
        local commands='run call functions snapshot doctor help'
        if [[ $subcommand == snapshot || $previous == snapshot ]]; then
            commands='save info verify'
        elif ((operands > 0)); then
            return
        fi
        mapfile -t COMPREPLY < <(compgen -W "$commands" -- "$current")
        return
        ;;
    call | 'snapshot save')
        if ((operands == 1)) || [[ $previous == --call ]]; then
            local names
            names=$(_pinhole_functions "$file")
            mapfile -t COMPREPLY < <(compgen -W "$names" -- "$current")
            return
        fi
        # @PATH gives an argument from a file.
        if [[ $current == @* ]]; then
            mapfile -t COMPREPLY < <(compgen -P @ -f -- "${current#@}")
            return
        fi
        ;;
    doctor) return ;;
    functions | 'snapshot info' | 'snapshot verify')
        if ((operands > 0)); then
            return
        fi
        ;;
    esac
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
}

# The names of the exports of a file, nothing when there are none to be had.
_pinhole_functions() {
    pinhole functions --json "$1" 2>/dev/null |
        python3 -c 'import json, sys; print("\n".join(f["name"] for f in json.load(sys.stdin)["exports"]))' 2>/dev/null
}

complete -F _pinhole pinhole
