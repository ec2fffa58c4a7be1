"""Names that tell programs apart because they are not renamed: keywords and standard libraries.

Of Python, C, C++, Java, JavaScript, Go and Rust. Written out, so that scores do not depend on the
version of Python. All other names are equal in the form that `code` compares.
"""

from __future__ import annotations

# Wherever they stand.
KEYWORDS = frozenset(
    """
Any ArithmeticError Array ArrayList Arrays AssertionError AttributeError BlockingIOError Boolean
Box BrokenPipeError BufferError Callable Character ChildProcessError Collections
ConnectionAbortedError ConnectionError ConnectionRefusedError ConnectionResetError Dict Double
EOFError EnvironmentError Err Exception False FileExistsError FileNotFoundError FloatingPointError
HashMap HashSet IOError ImportError IndentationError IndexError Integer InterruptedError
IsADirectoryError Iterable JSON KeyError List Long LookupError Map Math MemoryError
ModuleNotFoundError NULL NameError None NotADirectoryError NotImplementedError Number OSError
Object Ok Option Optional OverflowError PermissionError ProcessLookupError Promise RecursionError
ReferenceError Result RuntimeError Self Sequence Set Some String StringBuilder SyntaxError System
SystemError TabError TimeoutError True Tuple TypeError UnboundLocalError UnicodeDecodeError
UnicodeEncodeError UnicodeError UnicodeTranslateError Union ValueError Vec ZeroDivisionError abs
abstract all and any as ascii assert async auto await bin bool boolean break byte bytearray bytes
callable case catch cerr chan chr cin class classmethod cls collections complex console const
const_cast constexpr continue cout crate def default defer del delattr delete dict divmod do
double dyn dynamic_cast elif else elsif end endl enum enumerate eval except exec export extends
extern f32 f64 fallthrough false filter final finally float float64 fmt fn for foreach format
friend from frozenset func function functools getattr global globals go goto hasattr heapq hex i16
i32 i64 i8 if impl implements import in inline input instanceof int int32_t int64 int64_t
interface is isinstance isize issubclass iter itertools json lambda len let list locals long loop
make_pair map match math max memoryview min mod module mut namespace new next nil noexcept
nonlocal not np null nullptr object oct open or ord os override package pass pow print private
protected pub public raise random range re register repr rescue return reversed round rune select
self set setattr shared_ptr short signed size_t sizeof sorted static static_cast staticmethod std
str strconv strings struct sum super switch synchronized sys template this throw throws trait true
try tuple type typedef typename typeof u16 u32 u64 u8 uint32_t uint64_t uint8_t undefined
unique_ptr unless unordered_map unordered_set unsafe unsigned until use using usize var vector
virtual void volatile where while with yield zip
""".split()
)

# After a dot or before a bracket; elsewhere they are names of variables: index, values.
CALLED = frozenset(
    """
ASCII Atoi Builder ChainMap Collectors Contains Counter DOTALL DataFrame Decimal Errorf Fraction
IGNORECASE Ints Itoa Join LOCALE MULTILINE Match NOFLAG NormalDist OrderedDict Pattern Printf
Println RegexFlag Scanner Slice Split Sprintf StatisticsError Strings UNICODE UserDict UserList
UserString VERBOSE WRAPPER_ASSIGNMENTS WRAPPER_UPDATES accumulate acos acosh add append arange
argmax argmin argsort arguments argv array asList as_integer_ratio ascii_letters ascii_lowercase
ascii_uppercase asin asinh assign atan atan2 atanh back begin bisect bisect_left bisect_right
bit_count bit_length boxed by cache cached_property calloc cap capitalize casefold cbrt ceil
center chain char charAt charCodeAt chars choice clear clone close cmp_to_key collect comb
combinations combinations_with_replacement compile compress concat concatenate conjugate contains
containsKey containsValue contains_key copy copysign correlation cos cosh count covariance create
cycle datetime debugger decode deepcopy defaultdict degrees denominator deque difference
difference_update digest digits dir discard dist document dot dropwhile dumps e each echo emplace
emplace_back empty encode endswith ensure entries entry entrySet equals equalsIgnoreCase erase erf
erfc error escape every exists exp exp2 expandtabs expect explicit explode expm1 exports extend
fabs factorial filterfalse find findIndex findall finditer first floor fmean fmod forEach
format_map fprintf free frexp fromCharCode from_bytes fromhex fromkeys front fsum fullmatch gamma
gcd geometric_mean get getKey getOrDefault getValue get_mut getchar getline group groupby groups
harmonic_mean hash hashlib having heapify heappop heappush heappushpop heapreplace hexdigest hypot
id imag implode includes index indexOf inf insert insort insort_left insort_right intersection
intersection_update into_iter iota isDigit isEmpty isLetter isLetterOrDigit isNaN is_empty
is_integer isalnum isalpha isascii isclose isdecimal isdigit isdisjoint isfinite isidentifier
isinf islice islower isnan isnumeric isprintable isqrt isset isspace issubset issuperset istitle
isupper items iter_mut join keySet keys lastIndexOf lcm ldexp length lgamma limit
linear_regression listdir ljust loads local log log10 log1p log2 lower lower_bound lru_cache
lstrip main make make_shared make_unique maketrans malloc mapToInt match_indices md5 mean median
median_grouped median_high median_low memcpy memset merge mode modf move multimode mutable my
namedtuple nan native nextInt nextafter nlargest nsmallest number numerator numpy of on ones
operator or_insert order our out padEnd padStart pair pairwise panic parse parseFloat parseInt
partial partialmethod partition path pd perm permutations pi pop pop_back popitem printf println
priority_queue prod product property pstdev punctuation push push_back push_str put putchar puts
pvariance quantiles queue radians randint rbegin read readline readlines real realloc recover
reduce ref reinterpret_cast remainder remove removeprefix removesuffix rend repeat replace
replaceAll require reshape restrict rev reverse rfind rindex rjust rpartition rsplit rstrip scanf
search second setdefault sha256 shape shift shuffle sin singledispatch singledispatchmethod sinh
size slice some sort span splice split splitlines sprintf sqrt stack starmap startswith stdev
stdin stdout stoi strcat strcmp strcpy stream strictfp string stringify strip strlen sub subn
substr substring swap swapcase symmetric_difference symmetric_difference_update table takewhile
tan tanh tau tee test then timedelta title toCharArray toFixed toList toLowerCase toString
toUpperCase to_bytes to_owned to_string top total_ordering transient translate trim trunc typing
ulp union unique unshift unwrap update update_wrapper upper upper_bound valueOf values variance
vars vec window wraps write zeros zfill zip_longest
""".split()
)
