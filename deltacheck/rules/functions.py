"""Which of Spark's functions a rule may not call, and why.

The lists follow ``SHOW ALL FUNCTIONS`` of Spark 4.2 and its documentation; a test asks a running
Spark whether an aggregate, window or table function is missing here. Functions that nobody has
listed are left to Spark, which knows whether they are its own (see ``Expression.functions``).
"""

from __future__ import annotations

from deltacheck.rules.words import words

_AGGREGATE = """
    any any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate
    approx_top_k_combine array_agg avg bit_and bit_or bit_xor bitmap_and_agg
    bitmap_construct_agg bitmap_or_agg bool_and bool_or collect_list collect_set corr count
    count_if count_min_sketch covar_pop covar_samp every first first_value grouping grouping_id
    histogram_numeric hll_sketch_agg hll_union_agg kll_merge_agg_bigint kll_merge_agg_double
    kll_merge_agg_float kll_sketch_agg_bigint kll_sketch_agg_double kll_sketch_agg_float
    kurtosis last last_value listagg max max_by mean measure median min min_by mode percentile
    percentile_approx percentile_cont percentile_disc regr_avgx regr_avgy regr_count
    regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy schema_of_variant_agg skewness
    some std stddev stddev_pop stddev_samp string_agg sum theta_intersection_agg
    theta_sketch_agg theta_union_agg try_avg try_sum tuple_intersection_agg_double
    tuple_intersection_agg_integer tuple_sketch_agg_double tuple_sketch_agg_integer
    tuple_union_agg_double tuple_union_agg_integer var_pop var_samp variance vector_avg
    vector_sum
"""
_WINDOW = """
    cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number window
    session_window window_time
"""
_TABLE = """
    collations explode explode_outer inline inline_outer json_tuple posexplode
    posexplode_outer python_worker_logs range sql_keywords stack table_changes
    table_changes_by_path variant_explode variant_explode_outer
"""
_RANDOM = """
    aes_encrypt monotonically_increasing_id rand randn random randstr shuffle
    spark_partition_id try_reflect uniform uuid
"""
_FILE = "input_file_block_length input_file_block_start input_file_name"
_SESSION = """
    current_catalog current_database current_path current_schema current_timezone current_user
    is_account_group_member is_member session_user user version
"""
_CODE = "java_method reflect"
_RAISING = "assert_true raise_error"
_QUERY = "check constraint identifier select values with"

_REASONS: tuple[tuple[str, str, str], ...] = (
    (
        _AGGREGATE,
        "is an aggregate: it needs many rows, and a rule judges one",
        "Compute it before the write, into a column that the rule can test.",
    ),
    (
        _WINDOW,
        "is a window function: it needs many rows, and a rule judges one",
        "Compute it before the write, into a column that the rule can test.",
    ),
    (
        _TABLE,
        "makes rows, and a rule is one boolean value",
        "Use functions of whole arrays and maps (array_contains, array_min, map_keys ...).",
    ),
    (
        _RANDOM,
        "gives another result each time, so no row would be good or bad for certain",
        "Write a rule that depends on the row alone.",
    ),
    (
        _FILE,
        "depends on the file a row is read from, which a row being written does not have",
        "Write a rule that depends on the row alone.",
    ),
    (
        _SESSION,
        "depends on who writes and how, so the same row would be good for one and bad for another",
        "Write a rule that depends on the row alone; put back-quotes round a column of that name.",
    ),
    (
        _CODE,
        "runs code outside Spark SQL",
        "Write the rule with Spark's own functions.",
    ),
    (
        _RAISING,
        "raises an error of its own, which would stop every write instead of naming the rule",
        "Write the condition itself as the rule.",
    ),
    (
        _QUERY,
        "is not a function that a rule can call",
        "Write the boolean expression alone, without SELECT, VALUES, CHECK or IDENTIFIER; put "
        "back-quotes round a column of that name.",
    ),
)

REFUSED: dict[str, tuple[str, str]] = {
    function: (reason, hint) for names, reason, hint in _REASONS for function in names.split()
}
"""From a function's name, in lower case, to why a rule may not call it, and what to do."""

CLOCK = words("curdate current_date current_time current_timestamp getdate localtimestamp now")
"""Functions that read the clock, once for each write."""

CLOCK_WITHOUT_ARGUMENTS = frozenset({"unix_timestamp"})
"""Functions that read the clock when they are called without an argument."""

BARE_CLOCK = frozenset({"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP"})
"""Functions of the clock that Spark calls without parentheses."""

BARE_SESSION = frozenset({"CURRENT_PATH", "CURRENT_USER", "SESSION_USER"})
"""Functions of the session that Spark calls without parentheses. ``USER`` is one too, but
also a common column: a bare ``user`` is read as the column."""
