CREATE TABLE "operations"."notify_security" (
	"key" text PRIMARY KEY NOT NULL,
	"user_id" text NOT NULL,
	"fact" jsonb NOT NULL,
	"added_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "operations"."notify_deliveries" ADD COLUMN "fact" jsonb;