-- include: lib.lua
-- Decides a sign-in that waits for its person. Input: user_code (its name), decision (approved or denied), user_id,
-- session_id. Returns ok; same for a repeat by the same session; closed after another decision; gone.
local id = redis.call('GET', P .. 'dcode:' .. input.user_code)
local grant = id and P .. 'dgrant:' .. id
local record = grant and redis.call('HMGET', grant, 'status', 'expires_at', 'session_id')
if not record or not record[1] or tonumber(record[2]) <= now then return 'gone' end
if record[1] ~= 'pending' then
  return record[1] == input.decision and record[3] == input.session_id and 'same' or 'closed'
end
redis.call('HSET', grant, 'status', input.decision, 'user_id', input.user_id, 'session_id', input.session_id,
  'decided_at', text(now))
return 'ok'
