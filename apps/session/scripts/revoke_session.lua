-- include: lib.lua
-- Ends one session. Input: session_id, user_id (looked up by the session id when absent), reason, actor, request_id.
-- Returns {'revoked', event}, or {'gone'} when it had ended before: one event however often this is called.
local user = input.user_id or redis.call('GET', sid_key(input.session_id))
if not user then return { 'gone' } end
local state = redis.call('HGET', sess_key(user, input.session_id), 'state')
if state == 'active' then return { 'revoked', revoke(user, input.session_id, input.reason) } end
if state then drop(user, input.session_id) end
-- No record (it was lost or ended by its time), but an access token may still be alive.
redis.call('SET', deny_key(user, input.session_id), input.reason, 'EX', DENY_S)
return { 'gone' }
