-- include: lib.lua
-- A new session without tokens yet (pending). Drops pending ones older than 60 s and those that are over, and revokes the
-- oldest above the cap, but not keep_session_id, which opens this one.
-- Input: session_id, user_id, username, mode, cap, keep_session_id or none, fields of the client; begun_at if an earlier request
-- began the sign-in; of one through a provider also max_s, auth_time, proved_at and the indexes by which its logout finds the
-- session. Returns {created_at, expires_at, evicted events...}.
local PENDING_US = 60000000
local usess = usess_key(input.user_id)
local live = {}
for _, id in ipairs(redis.call('ZRANGE', usess, 0, -1)) do
  local record = redis.call('HMGET', sess_key(input.user_id, id), 'state', 'created_at', 'expires_at', 'last_used_at')
  local dead = not record[1] or is_over(record[3], record[4])
  if dead or (record[1] == 'pending' and tonumber(record[2]) < now - PENDING_US) then
    drop(input.user_id, id)
    -- A record that expired names its indexes no longer.
    for _, index in ipairs(input.indexes or {}) do redis.call('SREM', osid_key(index), input.user_id .. ' ' .. id) end
  else
    live[#live + 1] = { id = id, state = record[1] }
  end
end

local expires = now + math.min(LIFETIME_S, input.max_s or LIFETIME_S) * 1000000
local answer = { text(now), text(expires) }
local above = #live + 1 - input.cap
for _, one in ipairs(live) do
  if above > 0 and one.id ~= input.keep_session_id then
    above = above - 1
    if one.state == 'pending' then
      drop(input.user_id, one.id)
    else
      answer[#answer + 1] = revoke(input.user_id, one.id, 'evicted')
    end
  end
end

local record = {
  'session_id', input.session_id, 'user_id', input.user_id, 'username', input.username, 'mode', input.mode,
  'state', 'pending', 'created_at', text(now), 'expires_at', text(expires), 'last_used_at', text(now),
  'auth_time', text(input.auth_time or math.floor(now / 1000000)), 'gen', '0',
  'amr', table.concat(input.amr or { 'pwd' }, ' '),
}
for _, name in ipairs({ 'user_agent', 'ip_address', 'metadata', 'ua_hash', 'ua_family', 'ip_prefix', 'password_version', 'proved_at', 'begun_at' }) do
  if input[name] then
    record[#record + 1] = name
    record[#record + 1] = input[name]
  end
end
if input.indexes then
  record[#record + 1] = 'indexes'
  record[#record + 1] = cjson.encode(input.indexes)
end
local sess = sess_key(input.user_id, input.session_id)
redis.call('HSET', sess, unpack(record))
redis.call('EXPIRE', sess, LIFETIME_S)
redis.call('SET', sid_key(input.session_id), input.user_id, 'EX', LIFETIME_S)
redis.call('ZADD', usess, text(now), input.session_id)
redis.call('EXPIRE', usess, LIFETIME_S)
for _, index in ipairs(input.indexes or {}) do
  redis.call('SADD', osid_key(index), input.user_id .. ' ' .. input.session_id)
  redis.call('EXPIRE', osid_key(index), LIFETIME_S)
end
return answer
