"""Key-value and document stores: redis, mongo, influx."""

# ruff: noqa: E501 - tables and sentences read better on one line
from __future__ import annotations

import re
from typing import TYPE_CHECKING

from oikos.domain.verdict import EffectKind
from oikos.policy.scene import Flow
from oikos.policy.words import HOLE, Word

if TYPE_CHECKING:
    from oikos.policy.call import Call

_REDIS_READS = frozenset(
    """ping echo get mget strlen getrange exists type ttl pttl keys scan sscan hscan zscan hget hgetall hmget hkeys hvals hlen hexists hstrlen lrange llen lindex
    lpos smembers scard sismember smismember srandmember sinter sunion sdiff zrange zrevrange zrangebyscore zrevrangebyscore zrangebylex zcard zcount zscore
    zrank zrevrank zlexcount xrange xrevrange xlen xinfo xpending dbsize info time lastsave role object memory command randomkey bitcount bitpos getbit
    pfcount geopos geodist georadius_ro geosearch geohash lolwut touch_ select auth hello config client cluster slowlog latency module acl script
    pubsub readonly wait_ dump sort_ro hrandfield zrandmember""".split()
)
_REDIS_SUB_READS = {
    "config": {"get", "help"}, "client": {"list", "info", "id", "getname", "trackinginfo", "help"}, "slowlog": {"get", "len", "help"},
    "cluster": {"info", "nodes", "slots", "shards", "keyslot", "countkeysinslot", "getkeysinslot", "myid", "links", "replicas", "help"},
    "latency": {"latest", "history", "doctor", "graph", "histogram", "help"}, "module": {"list", "help"}, "acl": {"whoami", "cat", "help", "dryrun"},
    "script": {"exists", "help"}, "memory": {"usage", "stats", "doctor", "malloc-stats", "help"}, "object": {"encoding", "freq", "idletime", "refcount", "help"},
    "pubsub": {"channels", "numsub", "numpat", "help", "shardchannels", "shardnumsub"}, "xinfo": {"stream", "groups", "consumers", "help"},
    "command": {"count", "docs", "list", "info", "getkeys", "help", ""},
}  # fmt: skip
_REDIS_SUB_DESTROYS = frozenset(
    (
        ("function", "flush"),
        ("function", "delete"),
        ("function", "restore"),
        ("xgroup", "destroy"),
        ("xgroup", "delconsumer"),
    )
)
_REDIS_DESTROYS = frozenset(
    """flushall flushdb del unlink shutdown lpop rpop spop zpopmin zpopmax blpop brpop bzpopmin bzpopmax getdel lrem ltrim srem zrem zremrangebyscore
    zremrangebyrank zremrangebylex hdel xdel xtrim expire pexpire expireat pexpireat slaveof replicaof migrate rename restore swapdb debug lmpop zmpop
    rpoplpush lmove smove rename flush failover""".split()
)


def redis(this: Call) -> Flow | None:
    """`redis-cli [options] COMMAND ARG…`, or commands on standard input."""
    walker, scene = this.walker, this.scene
    args = this.line.args
    if this.has("--cluster"):
        for word in this.values("--cluster"):
            if word.text in ("del-node", "fix", "import", "create"):
                walker.destroy("redis.cluster", word.span, "Removes or rebuilds nodes of a cluster.", scene)
        return None
    if args:
        _redis_command(this, [word.text for word in args], args[0])
        if any(not word.literal for word in args[:1]):
            walker.unclear(
                "command.dynamic", args[0].span, "The redis command is only known when the shell runs.", scene
            )
        return None
    if this.has(
        "--stat",
        "--bigkeys",
        "--memkeys",
        "--hotkeys",
        "--latency",
        "--latency-history",
        "--latency-dist",
        "--scan",
        "--intrinsic-latency",
        "--ldb",
    ):
        return None
    if scene.stdin.text is not None:
        for line in scene.stdin.text.split("\n"):
            if line.strip():
                _redis_command(this, line.split(), Word(line, span=this.span))
    elif scene.stdin.piped:
        walker.unclear("exec.stdin", this.span, "Runs redis commands that are not shown here.", scene)
    else:
        walker.change(
            "interactive.sql", this.span, "redis-cli without a command waits for input.", scene, EffectKind.INTERACTIVE
        )
        walker.report.advice.append("give the command: redis-cli COMMAND")
    return None


def _redis_command(this: Call, words: list[str], at: Word) -> None:
    name = words[0].lower()
    sub = words[1].lower() if len(words) > 1 else ""
    if name in _REDIS_SUB_READS:
        if sub in _REDIS_SUB_READS[name]:
            if (name, sub) == ("config", "get") and any(
                re.search(r"(?i)pass|auth|\*$|^\*", word) and not re.search("(?i)max|lua", word)
                for word in words[2:]
                if word in ("*", "requirepass", "masterauth")
            ):
                this.walker.change(
                    "redis.secret", at.span, "Prints the password of the server.", this.scene, EffectKind.SENSITIVE
                )
            return
        destroys = (name, sub) in (
            ("cluster", "reset"),
            ("cluster", "flushslots"),
            ("script", "flush_"),
            ("acl", "deluser"),
            ("cluster", "forget"),
        )
        (this.walker.destroy if destroys else this.walker.change)(
            f"redis.{name}.{sub or 'none'}", at.span, f"`{name} {sub}` changes the server.", this.scene
        )
    elif name in _REDIS_READS:
        return
    elif name in _REDIS_DESTROYS or (name, sub) in _REDIS_SUB_DESTROYS:
        this.walker.destroy(f"redis.{name}", at.span, f"`{name}` deletes or replaces data.", this.scene)
    elif name in ("eval", "fcall", "evalsha") and any(
        call.lower() in _REDIS_DESTROYS for call in re.findall(r"call\(\s*['\"](\w+)", " ".join(words))
    ):
        this.walker.destroy("redis.eval", at.span, "The script deletes or replaces data.", this.scene)
    else:
        this.walker.change(
            f"redis.{re.sub(r'[^a-z]', '', name)}", at.span, f"`{name}` changes data or the server.", this.scene
        )


_MONGO_DESTROYS = re.compile(
    r"\b(?:dropDatabase|drop|dropIndex(?:es)?|deleteMany|deleteOne|remove|findOneAndDelete|shutdownServer|dropUser|dropAllUsers|dropRole|fsyncLock_)\s*\(|\b(?:deleteMany|deleteOne)['\"]?\s*:|renameCollection\([^)]*true"
)
_MONGO_ADMIN = re.compile(
    r"""db\.(?:adminCommand|runCommand)\(\s*\{\s*['"]?(?:listDatabases|listCollections|listCommands|serverStatus|replSetGetStatus|"""
    r"""replSetGetConfig|buildInfo|hostInfo|ping|connPoolStats|top|isMaster|hello|dbStats|collStats|getCmdLineOpts|getParameter|"""
    r"""connectionStatus|currentOp|lockInfo|features)['"]?\s*:\s*[\w'".*]+\s*(?:,\s*['"]?\w+['"]?\s*:\s*[\w'".]+\s*)*\}\s*\)"""
)
"""Commands of the server that only look."""
_MONGO_CALL = re.compile(r"([A-Za-z_$][\w$]*)\s*\(")
_MONGO_READS = frozenset(
    """stats status find findOne count countDocuments estimatedDocumentCount distinct aggregate getCollectionNames getCollectionInfos getCollection getSiblingDB
    getMongo getName getDBs listDatabases serverStatus hostInfo version currentOp isMaster hello conf config printReplicationInfo printSecondaryReplicationInfo
    getIndexes totalSize dataSize storageSize totalIndexSize getUsers getRoles limit skip sort projection toArray forEach pretty size explain hasNext next
    map filter print printjson tojson JSON stringify keys length ObjectId ISODate Date NumberLong NumberInt getReplicationInfo adminCommand_ getProfilingStatus
    isCapped latencyStats validate getShardDistribution getLogComponents Object slice join Math round includes""".split()
)


def mongo(this: Call) -> Flow | None:
    """`mongosh --eval TEXT`."""
    walker, scene = this.walker, this.scene
    texts = this.values("--eval")
    if not texts:
        if scene.stdin.text is not None:
            texts = [Word(scene.stdin.text, span=this.span)]
        else:
            walker.unclear(
                "interactive.sql", this.span, "mongosh without --eval waits for input, or runs a script.", scene
            )
            return None
    for word in texts:
        if not word.literal:
            walker.unclear("sql.dynamic", word.span, "Part of the text is only known when the shell runs.", scene)
        asked = _MONGO_ADMIN.sub("''", word.text)
        text = re.sub(r"'[^']*'|\"[^\"]*\"", "''", asked)
        if _MONGO_DESTROYS.search(text) or re.search(r"\b(?:shutdown|dropDatabase|drop|delete)['\"]?\s*:", word.text):
            walker.destroy("mongo.delete", word.span, "Deletes data.", scene)
        names = set(_MONGO_CALL.findall(text))
        unknown = names - _MONGO_READS
        if unknown or re.search(
            r"[\w\])]\s*=(?![=>])|\$out\b|\$merge\b|=>\s*\{|function|\beval\b|\bload\b|\[['\"]", text
        ):
            walker.unclear(
                "mongo.call",
                word.span,
                f"The text calls {', '.join(sorted(unknown)) or 'something'} that may change data.",
                scene,
            )
    return None


def influx(this: Call) -> Flow | None:
    """influx: Flux queries that write, and InfluxQL."""
    walker, scene = this.walker, this.scene
    from oikos.policy.minis.sql import judge_sql

    for word in this.values("-execute"):
        judge_sql(this, word)
    if not this.sub and not this.values("-execute") and not this.line.args:
        if scene.stdin.text is not None:
            judge_sql(this, Word(scene.stdin.text, span=this.span))
        elif scene.stdin.piped:
            walker.unclear(
                "console.stdin", this.span, "influx carries out what it reads, and that is not known.", scene
            )
    for word in this.line.args:
        text = word.text.replace(HOLE, "")
        if re.search(r"\bto\s*\(|\bwideTo\s*\(|http\.(?:post|endpoint)|sql\.to|experimental\.to", text):
            walker.change("influx.write", word.span, "The query writes its result.", scene)
        if not word.literal and not word.values:
            walker.unclear("sql.dynamic", word.span, "Part of the query is only known when the shell runs.", scene)
    return None
