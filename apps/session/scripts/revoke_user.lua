-- include: lib.lua
-- Ends all sessions of a user but keep_session_id and, with password_version, those that proved that password or a newer
-- one, or that began without a password since occurred_at (now if absent): the message may come late, when the user has
-- signed in again already. With occurred_at alone, those that began well after it stay: a login refuses from the commit
-- of a disable until the enable. A sign-in begun before finds the floor or the end set here (activate_session), and a
-- device that the kept session has approved finds its time (code.ts). With no session named to keep, tokens issued before
-- now (or before the oldest session that stays) are refused as well, also of sessions that this store does not know.
-- Input: user_id, keep_session_id, password_version, occurred_at, reason, actor, request_id. Returns the events.
local events = {}
local before = now
local since = input.occurred_at or now
-- The clock of the cause may differ by 5 s, and a request commits within 8 s.
local MARGIN_US = 15000000
local last = since
if input.occurred_at and not input.password_version then last = since + MARGIN_US end
local function stays(version, begun_at)
  if version and input.password_version then return tonumber(version) >= input.password_version end
  return (input.password_version or input.occurred_at) and tonumber(begun_at) > last
end
for _, id in ipairs(redis.call('ZRANGE', usess_key(input.user_id), 0, -1)) do
  if id ~= input.keep_session_id then
    local record = redis.call('HMGET', sess_key(input.user_id, id), 'state', 'password_version', 'created_at', 'expires_at',
      'last_used_at', 'begun_at')
    if record[1] and stays(record[2], record[6] or record[3]) then
      before = math.min(before, tonumber(record[3]))
    elseif record[1] == 'active' and is_over(record[4], record[5]) then
      drop(input.user_id, id)
      -- It ended before, but an access token may still be alive.
      redis.call('SET', deny_key(input.user_id, id), input.reason, 'EX', DENY_S)
    elseif record[1] == 'active' then
      events[#events + 1] = revoke(input.user_id, id, input.reason)
    else
      drop(input.user_id, id)
    end
  end
end
if input.password_version then raise(floor_key(input.user_id), input.password_version) end
raise(ended_key(input.user_id, input.password_version and ':password' or ''), math.min(last, now))
local kept = input.keep_session_id and sess_key(input.user_id, input.keep_session_id)
if kept and redis.call('EXISTS', kept) == 1 then
  local earlier = tonumber(redis.call('HGET', kept, 'ended_others_at') or '0')
  redis.call('HSET', kept, 'ended_others_at', text(math.max(earlier, since)))
end
if not kept then
  raise(P .. 'ub:{' .. input.user_id .. '}', math.floor(before / 1000000))
end
return events
