-- include: ../../../db/redis/gcra.lua
-- Every script of session: ARGV[1] is the key prefix, ARGV[2] its input as JSON, with the idle limit idle_s (0: none). Times are microseconds of Redis.
local P = ARGV[1]
local input = cjson.decode(ARGV[2])
local now = now_us()

local LIFETIME_S = 2592000
-- TOKEN_KINDS of apps/shared/jwt/claims.ts
local ACCESS_S = 900
local DENY_S = 960

local function sess_key(user, session) return P .. 'sess:{' .. user .. '}:' .. session end
local function usess_key(user) return P .. 'usess:{' .. user .. '}' end
local function sid_key(session) return P .. 'sid:' .. session end
local function osid_key(index) return P .. 'osid:' .. index end
local function deny_key(user, session) return P .. 'deny:{' .. user .. '}:' .. session end

local function floor_key(user) return P .. 'pv:{' .. user .. '}' end
-- Until when sign-ins that had begun are void; `by` a new password: those that proved none.
local function ended_key(user, by) return P .. 'ended:{' .. user .. '}' .. by end

local function text(us) return string.format('%.0f', us) end

-- Sets a bound that only ever grows, for as long as an access token or a login in flight could be older than it.
local function raise(key, value)
  local current = tonumber(redis.call('GET', key) or '0')
  redis.call('SET', key, text(math.max(current, value)), 'EX', DENY_S)
end

-- Denies the access tokens of a session whose proof is older than this second.
local function end_older(user, session, before)
  local key = P .. 'old:{' .. user .. '}:' .. session
  redis.call('HSET', key, 'before', math.max(tonumber(redis.call('HGET', key, 'before') or '0'), before))
  redis.call('EXPIRE', key, DENY_S)
  return key
end

-- RFC 3339 in UTC with microseconds (days to civil date after Howard Hinnant).
local function rfc3339(us)
  local s = math.floor(us / 1000000)
  local days = math.floor(s / 86400)
  local z = days + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local day = doy - math.floor((153 * mp + 2) / 5) + 1
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  local rest = s - days * 86400
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%06dZ', year, month, day,
    math.floor(rest / 3600), math.floor(rest % 3600 / 60), rest % 60, us % 1000000)
end

-- A UUIDv7 of this moment. A session is revoked once, so its id makes the event id unique.
local function event_id(session)
  local ms = string.format('%012x', math.floor(now / 1000))
  local h = redis.sha1hex(session .. ':' .. text(now))
  local variant = string.format('%x', 8 + tonumber(string.sub(h, 4, 4), 16) % 4)
  return string.sub(ms, 1, 8) .. '-' .. string.sub(ms, 9, 12) .. '-7' .. string.sub(h, 1, 3) .. '-'
    .. variant .. string.sub(h, 5, 7) .. '-' .. string.sub(h, 8, 19)
end

-- Whether a session has ended by its time: expired, or idle for too long.
local function is_over(expires_at, last_used_at)
  local idle = input.idle_s > 0 and now - tonumber(last_used_at) > input.idle_s * 1000000
  return tonumber(expires_at) <= now or idle
end

-- Forgets a session without a word: it never had tokens, or it ended by its time.
local function drop(user, session)
  for _, index in ipairs(cjson.decode(redis.call('HGET', sess_key(user, session), 'indexes') or '[]')) do
    redis.call('SREM', osid_key(index), user .. ' ' .. session)
  end
  redis.call('DEL', sess_key(user, session), sid_key(session))
  redis.call('ZREM', usess_key(user), session)
end

-- Ends a session: record gone, its access tokens denied and the event promised, all in one step.
-- Returns the fields of the event.
local function revoke(user, session, reason)
  drop(user, session)
  redis.call('SET', deny_key(user, session), reason, 'EX', DENY_S)
  local event = {
    'event_id', event_id(session), 'session_id', session, 'user_id', user, 'reason', reason,
    'access_valid_until', rfc3339(now + ACCESS_S * 1000000), 'occurred_at', rfc3339(now),
    'request_id', input.request_id or '', 'actor_type', input.actor_type or 'system', 'actor_id', input.actor_id or '',
  }
  redis.call('XADD', P .. 'auth:revoked', '*', unpack(event))
  return event
end
