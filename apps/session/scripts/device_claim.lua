-- include: lib.lua
-- One poll of a device (RFC 8628 3.4). Input: id, slack_ms, opening (the session that an approval opens). Returns approved with user_id, session_id, request and
-- decided_at, once; or pending, slow_down, denied, expired; or gone, with user_id and session of an earlier claim, which is marked.
local grant = P .. 'dgrant:' .. input.id
local record = redis.call('HMGET', grant, 'status', 'expires_at', 'interval_s', 'polled_at', 'user_id', 'session_id',
  'request', 'opened', 'decided_at')
if not record[1] then return { 'gone' } end
if record[1] == 'claimed' then
  redis.call('HSET', grant, 'again', 1)
  return { 'gone', record[5] or '', record[8] or '' }
end
if tonumber(record[2]) <= now then return { 'expired' } end
if record[1] == 'approved' then
  redis.call('HSET', grant, 'status', 'claimed', 'opened', input.opening)
  return { 'approved', record[5], record[6], record[7], record[9] or '0' }
end
if record[1] == 'denied' then
  redis.call('HSET', grant, 'status', 'claimed')
  return { 'denied' }
end
local early = record[4] and now < tonumber(record[4]) + tonumber(record[3]) * 1000000 - input.slack_ms * 1000
redis.call('HSET', grant, 'polled_at', text(now))
if not early then return { 'pending' } end
redis.call('HINCRBY', grant, 'interval_s', 5)
return { 'slow_down' }
