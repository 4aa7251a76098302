# Queries 2a and 3a of the Big Data Benchmark (Pavlo et al. 2009, as run by AMPLab) in DuckDB.
# Started by `afar workload sql` with: query, bytes, seed, repetitions, interpreter as given.
import sys
import time

query, size, seed, repeat = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
VERSION = "2.0.0"

try:
    import duckdb
except ImportError:
    sys.stderr.write(
        f"afar workload: --python {sys.argv[5]}: it has no module duckdb; install one with "
        f"{sys.argv[5]} -m pip install duckdb=={VERSION}, in a virtual environment if it says "
        "that it is managed from outside, or give another interpreter\n"
    )
    sys.exit(3)

# Bytes of a row of uservisits in memory, an eighth of a row of rankings and the answer.
ROW_BYTES = 175
VISITS_PER_PAGE = 8
visits = max(size // ROW_BYTES, VISITS_PER_PAGE * 8)
pages = visits // VISITS_PER_PAGE

database = duckdb.connect(":memory:", config={"threads": 1})
run = database.execute
run("SET enable_progress_bar = false")
# Whole numbers alone, so that rows are the same everywhere. Products stay below 2^62. P is the
# prime 2^31 - 1.
run("""CREATE MACRO fold(x) AS xor(x, x >> 15);
CREATE MACRO mix(row, salt) AS
  fold(fold((row * 48271 + salt * 69621 + 1) % 2147483647) * 1583458089 % 2147483647)
    * 784588716 % 2147483647;
CREATE MACRO page_url(page) AS
  printf('http://www.site%05d.example/%08d/%08x.html', mix(page, 1) % 10000, page, mix(page, 2));
CREATE MACRO address(visitor) AS printf('%d.%d.%d.%d', mix(visitor, 3) % 256,
  mix(visitor, 4) % 16, mix(visitor, 5) % 256, mix(visitor, 6) % 256)""")
salt = seed % 1000003 * 100
run(f"""CREATE TABLE rankings AS SELECT
  page_url(row) AS pageURL,
  (1 + 1000000 / (1 + mix(row, {salt} + 1) % 100000))::INTEGER AS pageRank,
  (1 + mix(row, {salt} + 2) % 100)::INTEGER AS avgDuration
  FROM range({pages}) AS rows(row)""")
# Few pages get most visits: the cube of a uniform number. Revenues are multiples of 2^-10, whose
# sums are exact in any order.
run(f"""CREATE TABLE uservisits AS SELECT
  address(mix(row, {salt} + 3) % ({visits} // 8)) AS sourceIP,
  page_url(mix(row, {salt} + 7) * mix(row, {salt} + 7) // 2147483647
    * mix(row, {salt} + 7) // 2147483647 * {pages} // 2147483647) AS destURL,
  DATE '1970-01-01' + (mix(row, {salt} + 8) % 15000)::INTEGER AS visitDate,
  ((mix(row, {salt} + 9) % 1024) / 1024.0)::FLOAT AS adRevenue,
  printf('Agent/%d.%d', mix(row, {salt} + 10) % 9, mix(row, {salt} + 11) % 99) AS userAgent,
  chr((65 + mix(row, {salt} + 12) % 26)::INTEGER) || 'XX' AS countryCode,
  chr((97 + mix(row, {salt} + 13) % 26)::INTEGER) || 'x-XX' AS languageCode,
  printf('word%d', mix(row, {salt} + 14) % 10000) AS searchWord,
  (1 + mix(row, {salt} + 15) % 10)::INTEGER AS duration
  FROM range({visits}) AS rows(row)""")

QUERIES = {
    "2a": """SELECT substr(sourceIP, 1, 8) AS name, sum(adRevenue) AS revenue
      FROM uservisits GROUP BY substr(sourceIP, 1, 8)""",
    "3a": """SELECT sourceIP AS name, totalRevenue AS revenue, avgPageRank FROM (
        SELECT sourceIP, avg(pageRank) AS avgPageRank, sum(adRevenue) AS totalRevenue
        FROM rankings AS R, (SELECT sourceIP, destURL, adRevenue FROM uservisits
          WHERE visitDate BETWEEN DATE '1980-01-01' AND DATE '1980-04-01') AS UV
        WHERE R.pageURL = UV.destURL GROUP BY UV.sourceIP)
      ORDER BY totalRevenue DESC, sourceIP LIMIT 1""",
}
elapsed = []
for _ in range(repeat):
    run("DROP TABLE IF EXISTS answer")
    start = time.perf_counter()
    run("CREATE TEMPORARY TABLE answer AS " + QUERIES[query])
    elapsed.append(time.perf_counter() - start)


def one(text):
    return run(text).fetchone()


# Another way to the same figures.
if query == "2a":
    found = one("SELECT sum(revenue) FROM answer")
    expected = one("SELECT sum(adRevenue) FROM uservisits")
else:
    found = one("SELECT revenue FROM answer")
    expected = one("""SELECT max(revenue) FROM (SELECT sum(adRevenue) AS revenue FROM uservisits
      WHERE visitDate >= DATE '1980-01-01' AND visitDate <= DATE '1980-04-01'
        AND destURL IN (SELECT pageURL FROM rankings) GROUP BY sourceIP)""")
if found != expected:
    sys.stderr.write(f"afar workload: sql: the result is wrong: {found[0]}, not {expected[0]}\n")
    sys.exit(1)
rows, checksum = one("""SELECT count(*), sum(mix(
    (md5_number_lower(name) % 2147483647)::BIGINT, (revenue * 1024)::BIGINT)) FROM answer""")
elapsed.sort()
median = f" (median of {repeat})" if repeat > 1 else ""
print(
    f"sql: {elapsed[(repeat - 1) // 2]:.6f} s{median}, query {query}, {visits} visits, "
    f"{pages} pages, {rows} rows, checksum {checksum:016x}"
)
