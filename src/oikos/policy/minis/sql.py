"""SQL: a tokeniser that knows which statements only read (policy design, SQL)."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind, Risk
from oikos.policy import danger, unwrap
from oikos.policy.scene import Flow
from oikos.policy.words import HOLE, Tag, Word

if TYPE_CHECKING:
    from oikos.policy.call import Call

_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|\#[^\n]*(?=\n|$)|/\*(?!!).*?\*/) | (?P<bang>/\*!.*?\*/) | (?P<dollar>\$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
    | (?P<string>[eEbBxXnN]?'(?:[^'\\]|\\.|'')*') | (?P<quoted>"(?:[^"]|"")*"|`[^`]*`|\[[A-Za-z_ ]+\]) | (?P<word>[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)
    | (?P<number>\d[\w.]*) | (?P<end>;|\\[gG]\b) | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_READS = frozenset(
    "SELECT SHOW EXPLAIN WITH VALUES TABLE DESCRIBE DESC PRAGMA USE BEGIN START COMMIT ROLLBACK END FETCH HELP LIST STATUS".split()
)
_DESTROYS = frozenset("DROP TRUNCATE DELETE PURGE FLUSHDB".split())
_CHANGES = frozenset(
    "INSERT UPDATE REPLACE MERGE CREATE ALTER GRANT REVOKE COPY CALL DO EXECUTE PREPARE ANALYZE VACUUM REINDEX CLUSTER REFRESH LOCK SET RESET NOTIFY LISTEN "
    "COMMENT LOAD IMPORT RENAME OPTIMIZE REPAIR CHECKPOINT ATTACH DETACH KILL FLUSH INSTALL HANDLER CHANGE STOP SECURITY REASSIGN DISCARD DECLARE SAVEPOINT "
    "RELEASE UPSERT SYSTEM EXCHANGE".split()
)
# Functions that only compute or look.
_FUNCTIONS = frozenset(
    """count sum avg min max coalesce nullif greatest least length char_length octet_length upper lower trim ltrim rtrim substr substring left right replace
    concat concat_ws format to_char to_timestamp to_date to_number cast convert round ceil ceiling floor abs mod power sqrt sign ln log exp random rand now
    current_timestamp current_date current_time localtime localtimestamp date time datetime strftime julianday unixepoch extract date_part date_trunc age
    date_format date_add date_sub datediff timediff timestampdiff from_unixtime unix_timestamp str_to_date year month day hour minute second dayofweek week
    interval ifnull isnull if iif nvl case array_agg string_agg group_concat json_agg jsonb_agg json_build_object jsonb_build_object json_extract json_value
    json_object json_array json_group_array json_each json_tree json_array_length json_type json_valid jsonb_pretty row_to_json to_json to_jsonb array_length
    array_to_string string_to_array unnest generate_series regexp_replace regexp_matches regexp_split_to_array split_part position strpos instr locate
    initcap lpad rpad reverse repeat md5 sha256 hex unhex quote quote_ident quote_literal chr ascii char version database schema user current_user
    session_user current_schema current_database current_setting pg_database_size pg_size_pretty pg_total_relation_size pg_relation_size pg_table_size
    pg_indexes_size pg_tablespace_size pg_stat_get_activity pg_is_in_recovery pg_last_wal_receive_lsn pg_last_wal_replay_lsn pg_last_xact_replay_timestamp
    pg_current_wal_lsn pg_wal_lsn_diff pg_get_constraintdef pg_get_indexdef pg_get_viewdef pg_get_functiondef pg_get_userbyid pg_encoding_to_char
    pg_blocking_pids pg_backend_pid pg_postmaster_start_time pg_conf_load_time pg_table_is_visible pg_get_expr obj_description col_description
    has_table_privilege has_database_privilege pg_stat_file_ pg_ls_waldir pg_ls_logdir pg_control_checkpoint pg_control_system txid_current_snapshot
    pg_stat_get_wal_senders pg_lock_status inet_client_addr inet_server_addr pg_get_replication_slots pg_show_all_settings pg_column_size
    row_number rank dense_rank ntile lag lead first_value last_value over partition exists any all some in not and or values row array distinct on filter
    sqlite_version typeof changes total_changes last_insert_rowid total printf likely unlikely glob like likelihood zeroblob nth_value percent_rank cume_dist
    percentile_cont percentile_disc within group stddev variance bool_or bool_and every bit_and bit_or std var_pop mode corr pragma_table_info
    pragma_index_list pragma_table_list pragma_integrity_check pragma_page_count pragma_page_size dbstat
    topk quantile uniq any_ tostring toint64 todate todatetime formatreadablesize arrayjoin tuple map countif sumif avgif uptime hostname numeric decimal varchar
    timestamp timestamptz int integer bigint text tables using as from join where select union exists by lateral table key index primary references unique check
    connection_id row_count found_rows charset collation benchmark_ inet_ntoa inet_aton field find_in_set elt make_set truncate_ cot sin cos tan atan
    mean median spread percentile derivative non_negative_derivative difference non_negative_difference moving_average cumulative_sum
    elapsed integral holt_winters_ first last top bottom fill json_arrayagg json_objectagg json_keys json_unquote json_contains json_search json_length any_value""".split()
)
_SECRET_TABLES = re.compile(
    r"(?i)\b(?:pg_authid|pg_shadow|rolpassword|passwd|authentication_string|pg_user_mappings?|load_file|pg_read_file|pg_read_binary_file|"
    r"pg_ls_dir_|secret_?keys?|api_?keys?|password_hash|oauth_tokens?|pg_hba_file_rules_)\b|\b(?:from|join)\s+(?:shadow|carves|curl)\b"
)
_PRAGMA_READS = frozenset(
    "table_info table_xinfo table_list index_list index_info index_xinfo database_list foreign_key_list foreign_key_check integrity_check quick_check page_count page_size "
    "freelist_count encoding compile_options collation_list function_list module_list pragma_list user_version schema_version application_id journal_mode "
    "synchronous cache_size foreign_keys auto_vacuum data_version stats max_page_count locking_mode busy_timeout wal_autocheckpoint".split()
)


def check(text: str) -> list[tuple[Risk, str, str]]:
    """Everything above a look in a text of SQL statements, as (risk, rule, sentence)."""
    found: list[tuple[Risk, str, str]] = []
    statement: list[tuple[str, str]] = []
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup or "other"
        if kind == "tag":
            kind = "dollar"
        if kind == "comment" or (kind == "other" and token.group().isspace()):
            continue
        if kind == "end":
            found += _statement(statement)
            statement = []
            continue
        if token.group() == "\\":
            found.append((Risk.CONFIG_MUTATION, "sql.escape", "A command of the client stands in the statement."))
            continue
        if kind == "bang":
            found.append((Risk.CONFIG_MUTATION, "sql.comment", "A comment that the server executes is not understood."))
            found += [one for one in check(re.sub(r"^/\*!\d*|\*/$", "", token.group())) if one[0] is Risk.DESTRUCTIVE]
            continue
        statement.append((kind, token.group()))
    return found + _statement(statement)


def _statement(tokens: list[tuple[str, str]]) -> list[tuple[Risk, str, str]]:
    if not tokens:
        return []
    words = [text.upper() for kind, text in tokens if kind == "word"]
    found: list[tuple[Risk, str, str]] = []
    first = words[0] if words and tokens[0][0] == "word" else ("SELECT" if tokens[0][1] == "(" else "")

    def add(risk: Risk, rule: str, text: str) -> None:
        found.append((risk, f"sql.{rule}", text))

    names = set(words)
    if first in ("DROP", "TRUNCATE", "DELETE", "PURGE"):
        add(Risk.DESTRUCTIVE, first.lower(), f"{first} deletes data or definitions.")
    elif first == "SHUTDOWN":
        add(Risk.DESTRUCTIVE, "shutdown", "Stops the server, and nobody starts it again.")
    elif first == "UPDATE" and "WHERE" not in names:
        add(Risk.DESTRUCTIVE, "update.all", "UPDATE without WHERE changes every row.")
    elif first == "ALTER" and names & {"DROP", "TRUNCATE", "DELETE", "DETACH"}:
        add(Risk.DESTRUCTIVE, "alter.drop", "ALTER … DROP deletes part of a definition and its data.")
    elif first == "MERGE" and "DELETE" in names:
        add(Risk.DESTRUCTIVE, "merge.delete", "MERGE deletes the rows that match.")
    elif (
        first == "COPY"
        and "PROGRAM" in names
        and any(danger.in_text(text.strip("'")) for kind, text in tokens if kind == "string")
    ):
        add(Risk.DESTRUCTIVE, "copy.program", "COPY runs a program that destroys something.")
    elif (
        first == "COPY"
        and [text for _, text in tokens[1:2]] == ["("]
        and words[-1:] != ["PROGRAM"]
        and _to_stdout(tokens)
    ):
        found += _statement(_inside(tokens))
    elif first in ("RESET", "FLUSH") and names & {"MASTER", "SLAVE", "REPLICA", "BINARY"} and first == "RESET":
        add(Risk.DESTRUCTIVE, "reset", "Deletes replication logs.")
    elif first in ("DO", "EXECUTE", "PREPARE", "CALL"):
        inner = " ".join(text for kind, text in tokens if kind in ("string", "dollar"))
        destroys = re.search(r"(?i)\b(?:drop|truncate|delete\s+from)\b", inner)
        add(Risk.DESTRUCTIVE if destroys else Risk.CONFIG_MUTATION, first.lower(), "Runs code inside the database.")
    elif first == "SYSTEM" and "DROP" in names and not names & {"CACHE", "CACHES"}:
        add(Risk.DESTRUCTIVE, "system.drop", "Forgets a replica and its data.")
    elif first in _CHANGES:
        add(Risk.CONFIG_MUTATION, first.lower(), f"{first} changes the database or the server.")
    elif first not in _READS or (first == "START" and words[1:2] != ["TRANSACTION"]):
        add(Risk.CONFIG_MUTATION, "unknown", f"The statement {first or tokens[0][1]!r} is not understood.")
    if first in ("EXPLAIN", "DESCRIBE", "DESC") and names & {"ANALYZE", "ANALYSE"}:
        if names & {"DELETE", "TRUNCATE", "DROP"} or ("UPDATE" in names and "WHERE" not in names):
            add(Risk.DESTRUCTIVE, "explain.analyze", "EXPLAIN ANALYZE executes the statement.")
        elif names & {"INSERT", "UPDATE", "MERGE", "CREATE", "EXECUTE", "CALL", "REFRESH", "DECLARE"}:
            add(Risk.CONFIG_MUTATION, "explain.analyze", "EXPLAIN ANALYZE executes the statement.")
    elif first in ("WITH", "SELECT", "EXPLAIN", "VALUES", "TABLE"):
        if ("DELETE" in names and first == "WITH") or ("TRUNCATE" in names and first == "WITH"):
            add(Risk.DESTRUCTIVE, "with.delete", "The query deletes rows.")
        elif names & {"INSERT", "UPDATE", "MERGE"} and first == "WITH":
            all_rows = "UPDATE" in names and "WHERE" not in names
            add(Risk.DESTRUCTIVE if all_rows else Risk.CONFIG_MUTATION, "with.change", "The query changes rows.")
        if first == "EXPLAIN":
            return found
        if "INTO" in names:
            add(Risk.CONFIG_MUTATION, "into", "SELECT … INTO writes a table or a file.")
        for one, two in pairwise(words):
            if one == "FOR" and two in ("UPDATE", "SHARE", "NO", "KEY"):
                add(Risk.CONFIG_MUTATION, "for.update", "Locks rows.")
    if first == "PRAGMA":
        name = words[1].lower() if len(words) > 1 else ""
        called = any(text == "(" for _, text in tokens) and not re.search(r"_(?:info|xinfo|list|check)$", name)
        if name not in _PRAGMA_READS or called or any(text == "=" for _, text in tokens):
            add(Risk.CONFIG_MUTATION, "pragma", f"PRAGMA {name} may change the database.")
    if first == "SHOW" and "GRANTS" not in names:
        pass
    for (kind, text), (_, after) in pairwise(tokens):
        if (
            kind in ("word", "quoted")
            and after == "("
            and first in ("SELECT", "WITH", "VALUES", "TABLE", "EXPLAIN", "PRAGMA")
        ):
            name = text.strip('"`').lower()
            if name == "explain":
                continue  # `EXPLAIN (ANALYZE, …) SELECT`: a list of settings
            if first != "PRAGMA" and name not in _FUNCTIONS:
                executes = name in (
                    "lo_unlink",
                    "pg_drop_replication_slot",
                    "pg_promote_drop",
                    "pg_wal_replay_drop",
                ) or (
                    name in ("query_to_xml", "dblink_exec", "dblink", "cursor_to_xml")
                    and any(
                        re.search(r"(?i)\b(?:drop|truncate|delete)\b", one)
                        for k, one in tokens
                        if k in ("string", "dollar")
                    )
                )
                add(
                    Risk.DESTRUCTIVE if executes else Risk.CONFIG_MUTATION,
                    f"function.{name[:30]}",
                    f"The function {name} is not known to be harmless.",
                )
    return found


def _to_stdout(tokens: list[tuple[str, str]]) -> bool:
    """Whether behind the parentheses stands TO STDOUT, and nothing that runs or names a file."""
    after = tokens[len(_inside(tokens)) + 3 :]
    return [text.upper() for _, text in after[:2]] == ["TO", "STDOUT"] and all(kind != "string" for kind, _ in after)


def _inside(tokens: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What stands in the first parentheses."""
    depth, inner = 0, []
    for kind, text in tokens[1:]:
        depth += (text == "(") - (text == ")")
        if depth == 0:
            break
        inner.append((kind, text))
    return inner[1:]


def secret(text: str) -> bool:
    """Whether the text reads columns or tables of passwords."""
    bare = re.sub(r"'(?:[^']|'')*'", "''", text)
    names_columns = re.fullmatch(
        r"(?is)\s*select\s+(?:distinct\s+)?(?P<columns>[\w\s,`.@()'\"]+?)\s+from\b(?:(?!\b(?:select|table|union|values)\b|;\s*\S).)*",
        bare,
    )
    users = re.search(r"(?i)\bmysql`?\s*\.\s*`?(?:user|global_priv)\b", bare) is not None
    shown = "password" if names_columns is None else names_columns.group("columns")
    return _SECRET_TABLES.search(bare) is not None or (users and re.search(r"(?i)password|priv\b", shown) is not None)


def judge_sql(this: Call, word: Word) -> None:
    """Judge one SQL text."""
    walker, scene = this.walker, this.scene
    if not word.literal and not word.values:
        walker.unclear("sql.dynamic", word.span, "Part of the statement is only known when the shell runs.", scene)
    for text in word.values or (word.text.replace(HOLE, "1"),):
        for risk, rule, sentence in check(text):
            walker.find(
                rule, risk, word.span, sentence, scene, (EffectKind.IRREVERSIBLE,) if risk is Risk.DESTRUCTIVE else ()
            )
        if secret(text):
            walker.change("sql.secret", word.span, "The query reads passwords or keys.", scene, EffectKind.SENSITIVE)


_PSQL_READS = re.compile(
    r"\\(?:d\w*\+?S?\+?|l\+?|z|conninfo|encoding|dt|timing(?:\s+o\w+)?|x(?:\s+\w+)?|pset\s+[\w ]+|a|t|H|q|\?|h|sf\+?|sv\+?|echo|errverbose|copyright|c(?:onnect)?)(?=\s|$)[^`|]*"
)


def psql(this: Call) -> Flow | None:
    """psql: -c texts, backslash commands, standard input."""
    texts = [*this.values("-c", "--command")]
    for word in texts:
        _psql_text(this, word)
    if this.has("-f", "--file"):
        for word in this.values("-f", "--file"):
            if word.text == "-":
                _from_stdin(this, _psql_text)
            else:
                this.walker.unclear(
                    "sql.file", word.span, "Runs the statements of a file that is not shown here.", this.scene
                )
    elif not texts and not this.has("-l", "--list"):
        _from_stdin(this, _psql_text)
    return Flow(frozenset((Tag.FILE,)), None, True)


def _psql_text(this: Call, word: Word) -> None:
    walker, scene = this.walker, this.scene
    lines = []
    for line in word.text.split("\n"):
        if line.lstrip().startswith("\\") and not re.match(r"\s*\\[gG]\s*;?$", line):
            if not _PSQL_READS.fullmatch(line.strip()):
                walker.unclear(
                    "psql.meta", word.span, f"The psql command {line.strip()[:20]} may write or run something.", scene
                )
                shell = re.match(r"\s*\\!\s*(.*)", line)
                if shell:
                    walker.script(shell.group(1), scene.inside("psql \\!"), word.span, None)
        else:
            if re.search(r"\\(?:g\w*\s*[|/\w]|watch|copy|o\b|!|i\b)", line):
                walker.unclear("psql.meta", word.span, "A psql command in the text may write or run something.", scene)
            lines.append(line)
    judge_sql(this, Word("\n".join(lines), word.kind, word.span, word.splits, word.tags))


def _from_stdin(this: Call, how: object) -> None:
    """Statements on standard input."""
    flow, walker, scene = this.scene.stdin, this.walker, this.scene
    if flow.text is not None:
        word = Word(flow.text, span=this.span)
        _psql_text(this, word) if how is _psql_text else _mysql_text(
            this, word
        ) if how is _mysql_text else _sqlite_text(this, word)
    elif flow.piped and not flow.file:
        walker.unclear("exec.stdin", this.span, f"{this.name} runs statements another command prints.", scene)
        if "--clean" in scene.reads:
            walker.destroy("sql.clean", this.span, "Drops what the dump replaces.", scene)
        if Tag.NETWORK in flow.tags:
            unwrap.fed(walker, this.span, scene, this.name)
    elif flow.piped:
        walker.unclear("sql.file", this.span, "Runs the statements of a file that is not shown here.", scene)
    else:
        walker.change(
            "interactive.sql",
            this.span,
            f"{this.name} without a statement waits for input.",
            scene,
            EffectKind.INTERACTIVE,
        )
        walker.report.advice.append(
            f"give the statement: {this.name} {'-c' if this.name == 'psql' else '-e' if this.name != 'sqlite3' else 'FILE'} 'SELECT …'"
        )


def mysql(this: Call) -> Flow | None:
    """mysql and mariadb: -e texts and standard input."""
    texts = this.values("-e", "--execute")
    for word in (*texts, *this.values("--init-command")):
        _mysql_text(this, word)
    if not texts:
        _from_stdin(this, _mysql_text)
    return Flow(frozenset((Tag.FILE,)), None, True)


def _mysql_text(this: Call, word: Word) -> None:
    walker, scene = this.walker, this.scene
    kept = []
    for line in re.split(r"[\n;]", word.text):
        escape = re.match(r"\s*(?:system|\\!)\s+(.*)", line)
        if escape:
            walker.unclear("mysql.system", word.span, "Runs a program.", scene)
            walker.script(escape.group(1), scene.inside("mysql system"), word.span, None)
        elif re.match(r"\s*(?:\\[TPR.oe]|tee|source|pager|edit|delimiter)\b", line):
            walker.unclear("mysql.command", word.span, "A mysql command in the text may write or run something.", scene)
        else:
            kept.append(line)
    text = word.text if len(kept) == len(re.split(r"[\n;]", word.text)) else ";".join(kept)
    judge_sql(this, Word(text, word.kind, word.span, word.splits, word.tags, word.values))


_SQLITE_READS = re.compile(
    r"\.(?:tables|schema|databases|indexes|indices|fullschema|dbinfo|headers?|mode|width|nullvalue|separator|timeout|stats|show|version|print|echo|bail|changes|"
    r"eqp|explain|help|quit|exit|dump|sha3sum|lint|limit|timer|dbconfig|vfslist|vfsinfo|auth)\b[^|]*"
)


def sqlite(this: Call) -> Flow | None:
    """`sqlite3 [options] FILE [SQL…]`."""
    args = this.line.args
    for word in args[1:]:
        _sqlite_text(this, word)
    for word in this.values("-cmd", "--cmd", "-c"):
        _sqlite_text(this, word)
    if args:
        this.walker.report.name("database", args[0].text.replace(HOLE, ""), this.scene.place, Risk.READ_ONLY, "query")
    if len(args) < 2 and not (this.name == "duckdb" and this.has("-c")):
        _from_stdin(this, None)
    return Flow(frozenset((Tag.FILE,)), None, True)


def _sqlite_text(this: Call, word: Word) -> None:
    walker, scene = this.walker, this.scene
    rest = []
    for line in word.text.split("\n"):
        text = line.strip()
        if not text.startswith("."):
            rest.append(line)
        elif not _SQLITE_READS.fullmatch(text):
            if text.startswith((".restore", ".archive", ".ar ", ".shell", ".system")):
                if text.startswith(".restore"):
                    walker.destroy("sqlite.restore", word.span, "Overwrites the database.", scene)
                    continue
                shell = re.match(r"\.(?:shell|system)\s+(.*)", text)
                if shell:
                    walker.script(shell.group(1), scene.inside("sqlite .shell"), word.span, None)
            walker.unclear(
                "sqlite.command", word.span, f"The sqlite command {text.split()[0]} may write or run something.", scene
            )
    judge_sql(
        this, Word("\n".join(rest), word.kind, word.span, word.splits, word.tags, word.values if len(rest) == 1 else ())
    )


def sqltext(this: Call) -> Flow | None:
    """Any client that takes statements by an option or as its last argument."""
    words = this.values("-q", "--query", "-e", "--execute", "-c", "--command", "-Q", "-execute", "--sql")
    if this.name == "osqueryi":
        words = words or list(this.line.args)
    for word in words:
        judge_sql(this, word)
    if not words:
        if this.scene.stdin.text is not None:
            judge_sql(this, Word(this.scene.stdin.text, span=this.span))
        else:
            this.walker.unclear(
                "interactive.sql", this.span, f"{this.name} without a statement waits for input.", this.scene
            )
    return None
