-- include: lib.lua
-- Puts the next refresh token in the place of the current one; HSET keeps the record's time to live.
local function advance(sess, current)
  redis.call('HSET', sess, 'prev_hash', current, 'refresh_token_hash', input.hash, 'rotated_at', text(now),
    'last_used_at', text(now), 'retry_key_hash', input.retry_key_hash or '', 'retry_ua_hash', input.ua_hash or '',
    'succ_jti', input.succ_jti, 'succ_iat', input.succ_iat, 'succ_kid', input.succ_kid)
  redis.call('HINCRBY', sess, 'gen', 1)
end

-- Whether this is the same request again: same key, same user agent, soon after. A record of the fields that prove it.
local function is_retry(record)
  local key, agent, rotated = record[1], record[2], tonumber(record[3] or '0')
  return input.retry_key_hash ~= nil and key == input.retry_key_hash and agent == (input.ua_hash or '')
    and input.window_s > 0 and now - rotated <= input.window_s * 1000000
end
local PROOF = { 'retry_key_hash', 'retry_ua_hash', 'rotated_at' }

-- The successor again. Whoever repeats has not got it yet, so the time for the next repeat begins anew.
local function successor(sess)
  redis.call('HSET', sess, 'rotated_at', text(now))
  local succ = redis.call('HMGET', sess, 'succ_jti', 'succ_iat', 'succ_kid')
  return { 'retry', succ[1], succ[2], succ[3] }
end
