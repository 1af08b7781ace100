ALTER TABLE "operations"."notify_destinations" ADD COLUMN IF NOT EXISTS "previous_secret" "bytea";--> statement-breakpoint
ALTER TABLE "operations"."notify_destinations" ADD COLUMN IF NOT EXISTS "previous_until" timestamp with time zone;
